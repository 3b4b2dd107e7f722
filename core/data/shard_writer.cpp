#include "core/data/shard_writer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/data/image/jpeg_header.h"
#include "core/data/shard_format.h"
#include "core/io/crc32c.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {
constexpr size_t kBufferBytes = 4 << 20;

// A name must mean one class everywhere: in labels.csv, in a taxonomy, on the labeling page.
ShardSpec checked_classes(ShardSpec spec) {
  std::set<std::string> seen;
  for (const std::string& name : spec.classes) {
    PAL_DATA_CHECK(seen.insert(name).second, "two classes have the same name", name, "give every class its own name");
  }
  return spec;
}
}  // namespace

using namespace shard_format;

ShardWriter::ShardWriter(ShardSpec spec, std::string target, std::optional<io::PartialFile> partial, io::h5::File file)
    : spec_(checked_classes(std::move(spec))),
      target_(std::move(target)),
      partial_(std::move(partial)),
      file_(std::move(file)) {
  buffer_.reserve(kBufferBytes);
}

ShardWriter::ShardWriter(const std::string& path, ShardSpec spec)
    : spec_(checked_classes(std::move(spec))),
      target_(path),
      partial_(path),
      file_(io::h5::File::create(partial_->path(), path)) {
  buffer_.reserve(kBufferBytes);
}

ShardWriter ShardWriter::staged(const std::string& path, const std::string& target, ShardSpec spec) {
  return ShardWriter(std::move(spec), target, std::nullopt, io::h5::File::create(path, target, io::Content::keep));
}

void ShardWriter::note(size_t bytes, uint32_t crc, int64_t label, std::string_view id) {
  offsets_.push_back(offsets_.back() + bytes);
  crcs_.push_back(crc);
  labels_.push_back(label);
  ids_.emplace_back(id);
}

void ShardWriter::note_size(const uint8_t* data, size_t bytes) {
  if (spec_.encoding != Encoding::jpeg) return;
  try {
    const JpegHeader header = inspect_jpeg(data, bytes, JpegWalk::to_first_scan);
    heights_.push_back(header.height);
    widths_.push_back(header.width);
  } catch (const Error&) {  // bytes that are no JPEG file: the shard then has no sizes
  }
}

void ShardWriter::write_sizes() {
  std::vector<int64_t> shape(spec_.shape.begin(), spec_.shape.end());
  if (spec_.encoding == Encoding::jpeg && heights_.size() == crcs_.size()) {
    std::vector<int64_t> sides;
    for (std::vector<int32_t>* all : {&heights_, &widths_}) {
      std::sort(all->begin(), all->end());
      sides.insert(sides.end(), {all->front(), (*all)[all->size() / 2], all->back()});
    }
    shape = {sides[0] == sides[2] ? sides[0] : 0, sides[3] == sides[5] ? sides[3] : 0, 3};  // decoded to RGB
    file_.set_integers("/", "sides", sides);
  }
  file_.set_integers("/", "shape", shape);
}

bool ShardWriter::restore(size_t bytes, uint32_t crc, int64_t label, std::string_view id) {
  PAL_ASSERT(buffer_.empty(), "samples are restored before others come");
  const uint64_t at = file_.end() + flushed_;
  if (bytes == 0 || at + bytes > file_.handle().size()) return false;
  buffer_.resize(bytes);
  const bool same = file_.handle().read_at(at, buffer_.data(), bytes) && io::crc32c(buffer_.data(), bytes) == crc;
  if (same) note_size(buffer_.data(), bytes);
  buffer_.clear();
  if (!same) return false;
  flushed_ += bytes;
  note(bytes, crc, label, id);
  return true;
}

void ShardWriter::append(const StoredImage& image) {
  PAL_DATA_CHECK(image.bytes > 0, target_ + ": an image has no bytes", image.id, "leave it out");
  if (spec_.encoding == Encoding::raw) {
    const int64_t expected = int64_t{spec_.shape[0]} * spec_.shape[1] * spec_.shape[2];
    PAL_ASSERT(static_cast<int64_t>(image.bytes) == expected, "a raw image of another size than the shard's shape");
  }
  const auto classes = static_cast<int64_t>(spec_.classes.size());
  PAL_DATA_CHECK(image.label >= -1 && image.label < classes,
                 target_ + ": label {} is out of range for " + std::string(image.id), image.label,
                 "there are " + std::to_string(classes) + " classes");
  if (buffer_.size() + image.bytes > kBufferBytes) flush();
  buffer_.insert(buffer_.end(), image.data, image.data + image.bytes);
  note_size(image.data, image.bytes);
  note(image.bytes, image.crc ? *image.crc : io::crc32c(image.data, image.bytes), image.label, image.id);
}

void ShardWriter::flush() {
  const uint64_t at = file_.end() + flushed_;
  file_.handle().write_at(at, buffer_.data(), buffer_.size());
  file_.handle().start_sync(at, buffer_.size());
  flushed_ += buffer_.size();
  buffer_.clear();
}

template <class T>
void ShardWriter::put(const std::string& name, const std::vector<T>& values) {
  file_.write(name, values);
  file_.set_integers(name, kCrcAttribute, {io::crc32c(values.data(), values.size() * sizeof(T))});
}

void ShardWriter::put_text(const std::string& name, const std::vector<std::string>& values) {
  file_.write_text(name, values);
  const std::string packed = io::h5::pack_text(values).bytes;
  file_.set_integers(name, kCrcAttribute, {io::crc32c(packed.data(), packed.size())});
}

void ShardWriter::finish() {
  PAL_DATA_CHECK(!crcs_.empty(), target_ + " would have no samples", "", "give it at least one");
  flush();
  file_.set_integers("/", "pal_format", {kVersion});
  file_.set_text("/", "encoding", spec_.encoding == Encoding::raw ? "raw" : "jpeg");
  write_sizes();
  if (!spec_.split.empty()) file_.set_text("/", "split", spec_.split);
  file_.make_group("images");
  file_.describe(kBytes, io::h5::Type::u8, static_cast<int64_t>(flushed_), 1);
  put(kOffsets, offsets_);
  put(kCrcs, crcs_);
  if (!spec_.classes.empty()) {
    put(kLabels, labels_);
    put_text(kClasses, spec_.classes);
  }
  put_text(kIds, ids_);
  if (!spec_.parents.empty()) {
    put(kParents, spec_.parents);
    if (!spec_.parent_names.empty()) put_text(kParentNames, spec_.parent_names);
  }
  file_.close();
  file_.handle().truncate(file_.end());  // a staged file may have been longer
  file_.handle().sync();
  file_.handle() = io::FileHandle();
  offsets_ = {};  // free the memory: many shards may wait for their publication
  crcs_ = {};
  labels_ = {};
  ids_ = {};
  heights_ = {};
  widths_ = {};
  buffer_ = {};
}

void ShardWriter::publish() {
  PAL_ASSERT(partial_.has_value(), "a staged shard is published by who staged it");
  partial_->publish();
}

}  // namespace pal::data
