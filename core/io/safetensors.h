// safetensors: named tensors in a file: an 8-byte length, a JSON header, raw bytes. Readable in Python; nothing
// executes.
#pragma once

#include <map>
#include <string>

#include "core/ops/named_tensors.h"

namespace pal::io {

// Writes to `path` directly (the caller renames); metadata goes to "__metadata__". fsyncs before it returns the SHA-256
// of what was written.
std::string write_safetensors(const std::string& path, const ops::NamedTensors& tensors,
                              const std::map<std::string, std::string>& metadata);

struct SafetensorsFile {
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, std::string> metadata;
};
// Every length, offset, dtype and overlap is checked; a bad file throws Error (data) with its name and the reason.
SafetensorsFile read_safetensors(const std::string& path);

}  // namespace pal::io
