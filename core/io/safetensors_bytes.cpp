#include "core/io/safetensors_bytes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/io/files.h"
#include "core/io/sha256.h"
#include "kernels/base/error.h"

namespace pal::io {

std::string write_safetensors_bytes(const std::string& path, const std::vector<TensorBytes>& tensors,
                                    const TensorSource& source, const std::map<std::string, std::string>& metadata) {
  // Wide types first, so that every tensor is aligned; then by name.
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return tensors[a].width != tensors[b].width ? tensors[a].width > tensors[b].width
                                                : tensors[a].name < tensors[b].name;
  });
  nlohmann::ordered_json header;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const size_t k : order) {
    const TensorBytes& t = tensors[k];
    PAL_ASSERT(!header.contains(t.name), "tensor names are distinct");
    header[t.name] = {{"dtype", t.dtype}, {"shape", t.shape}, {"data_offsets", {offset, offset + t.bytes}}};
    offset += t.bytes;
  }
  std::string text = header.empty() ? "{}" : header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();

  FileWriter file(path);
  Sha256 hash;
  const auto put = [&](const void* data, size_t bytes) {
    hash.add(data, bytes);
    file.write(data, bytes);
  };
  put(&length, sizeof(length));
  put(text.data(), text.size());
  for (const size_t k : order) {
    const char* data = static_cast<const char*>(source(k));
    // In pieces, so that what was hashed is still in the cache when it is written.
    constexpr uint64_t kPiece = 1 << 18;
    for (uint64_t done = 0; done < tensors[k].bytes; done += kPiece)
      put(data + done, std::min(kPiece, tensors[k].bytes - done));
  }
  file.finish();
  return hash.hex();
}

}  // namespace pal::io
