// shard_reader: one shard of a data set. Opening checks it; images are read by number.
//
// Opening reads the index (20 bytes a sample) and checks format, types, shapes, offsets and labels; the images stay on
// disk. The constructor closes HDF5 again before it returns.
// Thread: read() and id() use pread and may be called from any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/io/file_handle.h"
#include "core/io/h5.h"

namespace pal::data {

class ShardReader {
 public:
  // Throws Error (data) with the file and the reason.
  explicit ShardReader(const std::string& path);

  const std::string& path() const { return handle_.path(); }
  int64_t size() const { return static_cast<int64_t>(crcs_.size()); }
  Encoding encoding() const { return encoding_; }
  const std::vector<int32_t>& shape() const { return shape_; }
  const ImageSides& sides() const { return sides_; }
  const std::string& split() const { return split_; }
  const std::vector<int64_t>& labels() const { return labels_; }  // empty when the shard has none
  std::vector<int64_t> take_labels() { return std::move(labels_); }
  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<int64_t>& parents() const { return parents_; }
  const std::vector<std::string>& parent_names() const { return parent_names_; }

  uint64_t image_bytes(int64_t sample) const { return offsets_[at(sample) + 1] - offsets_[at(sample)]; }
  uint32_t image_crc(int64_t sample) const { return crcs_[at(sample)]; }
  // The bytes of an image; a wrong checksum throws Error (data) with file and sample.
  void read(int64_t sample, std::vector<uint8_t>& bytes) const;
  void will_read(int64_t begin, int64_t end) const {
    handle_.will_read(images_.offset + offsets_[at(begin)], offsets_[at(end)] - offsets_[at(begin)]);
  }
  std::string id(int64_t sample) const;     // the sample's number where the shard has no ids
  std::string where(int64_t sample) const;  // "file: sample 3 (id)"
  void check_ids() const;                   // the one array that is not checked on opening

 private:
  static size_t at(int64_t sample) { return static_cast<size_t>(sample); }
  explicit ShardReader(io::h5::File file);
  void read_header(const io::h5::File& file);
  void check_images(const io::h5::File& file);
  void check_classes(const io::h5::File& file);

  io::FileHandle handle_;
  Encoding encoding_ = Encoding::raw;
  std::vector<int32_t> shape_;
  ImageSides sides_;
  std::string split_;
  io::h5::Extent images_, ids_;
  std::vector<uint64_t> offsets_;
  std::vector<uint32_t> crcs_;
  std::vector<int64_t> labels_, parents_;
  std::vector<std::string> classes_, parent_names_;
  int64_t ids_crc_ = -1;  // −1: not stored
};

}  // namespace pal::data
