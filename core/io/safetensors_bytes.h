// safetensors_bytes: writes a safetensors file from plain bytes, without LibTorch, so that a test can link it alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace pal::io {

struct TensorBytes {
  std::string name;
  std::string dtype;   // the format's word: F32, I64, …
  uint64_t width = 0;  // bytes of an element
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
};

// The bytes of tensor k, dense and row-major; valid until the next call.
using TensorSource = std::function<const void*(size_t k)>;

// Writes to `path` directly (the caller renames); metadata goes to "__metadata__". fsyncs before it returns the SHA-256
// of what was written. The source is asked for each tensor once, in the order of the file: wide types first.
std::string write_safetensors_bytes(const std::string& path, const std::vector<TensorBytes>& tensors,
                                    const TensorSource& source, const std::map<std::string, std::string>& metadata);

}  // namespace pal::io
