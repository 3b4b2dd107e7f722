// shard_writer: writes one shard of a data set, sample by sample.
//
// append() writes image bytes to the file; offsets, checksums, labels, sizes and ids stay in memory until finish(),
// about 60 bytes a sample. The shape of JPEG files is read from their headers. The same samples give the same file. The
// shard's name appears only at publish(); a writer that is destroyed earlier removes its file. A staged writer is for
// imports that survive a kill: the caller chooses its file's name, which stays; the next process restores its samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"
#include "core/io/file_handle.h"
#include "core/io/h5.h"

namespace pal::data {

struct ShardSpec {
  Encoding encoding = Encoding::raw;
  std::vector<int32_t> shape = {0, 0, 0};  // raw: (height, width, channels)
  std::vector<std::string> classes;        // C; none: the samples have no labels
  std::vector<int64_t> parents;            // the taxonomy: C leaves, then inner nodes; −1 root; or empty
  std::vector<std::string> parent_names;   // of the inner nodes
  std::string split;                       // "train", "test", or empty
};

// The bytes of one image with what is known about it.
struct StoredImage {
  const uint8_t* data = nullptr;
  size_t bytes = 0;
  int64_t label = -1;  // −1 unknown
  std::string_view id;
  std::optional<uint32_t> crc = {};  // CRC32C of the bytes, when it is known already
};

class ShardWriter {
 public:
  ShardWriter(const std::string& path, ShardSpec spec);
  // Writes at `path` itself, where an earlier process may have left samples; errors name `target`.
  static ShardWriter staged(const std::string& path, const std::string& target, ShardSpec spec);

  // Restores a sample that is already in the file, after the ones before it; false when its checksum is wrong.
  bool restore(size_t bytes, uint32_t crc, int64_t label, std::string_view id);
  void append(const StoredImage& image);
  void flush();  // writes buffered samples to the file (not yet synced to disk)
  size_t waiting_bytes() const { return buffer_.size(); }
  void finish();   // writes and syncs everything, still under the temporary name
  void publish();  // after finish(): renames it to `path`

 private:
  ShardWriter(ShardSpec spec, std::string target, std::optional<io::PartialFile> partial, io::h5::File file);
  void note(size_t bytes, uint32_t crc, int64_t label, std::string_view id);
  void note_size(const uint8_t* data, size_t bytes);
  void write_sizes();
  template <class T>
  void put(const std::string& name, const std::vector<T>& values);
  void put_text(const std::string& name, const std::vector<std::string>& values);

  ShardSpec spec_;
  std::string target_;
  std::optional<io::PartialFile> partial_;  // none: staged
  io::h5::File file_;
  std::vector<uint8_t> buffer_;  // image bytes not yet in the file
  uint64_t flushed_ = 0;         // image bytes in the file
  std::vector<uint64_t> offsets_ = {0};
  std::vector<uint32_t> crcs_;
  std::vector<int64_t> labels_;
  std::vector<std::string> ids_;
  std::vector<int32_t> heights_, widths_;  // of JPEG files
};

}  // namespace pal::data
