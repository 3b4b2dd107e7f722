#include "core/data/shard_writer.h"

#include <utility>

#include "core/data/crc32c.h"
#include "core/data/shard_format.h"
#include "kernels/base/error.h"

namespace pal {
namespace {
constexpr size_t kBufferBytes = 4 << 20;
}

using namespace shard_format;

ShardWriter::ShardWriter(const std::string& path, ShardSpec spec)
    : spec_(std::move(spec)), partial_(path), file_(h5::File::create(partial_.path(), path)) {
  buffer_.reserve(kBufferBytes);
}

void ShardWriter::append(const StoredImage& image) {
  const std::string& path = partial_.target();
  PAL_DATA_CHECK(image.bytes > 0, path + ": an image without bytes", image.id, "leave it out");
  if (spec_.encoding == Encoding::raw) {
    const int64_t expected = int64_t{spec_.shape[0]} * spec_.shape[1] * spec_.shape[2];
    PAL_ASSERT(static_cast<int64_t>(image.bytes) == expected, "a raw image of another size than the shard's shape");
  }
  const auto classes = static_cast<int64_t>(spec_.classes.size());
  PAL_DATA_CHECK(image.label >= -1 && image.label < classes, path + ": label out of range for " + std::string(image.id), image.label,
                 "there are " + std::to_string(classes) + " classes");
  if (buffer_.size() + image.bytes > kBufferBytes) flush();
  buffer_.insert(buffer_.end(), image.data, image.data + image.bytes);
  offsets_.push_back(offsets_.back() + image.bytes);
  crcs_.push_back(crc32c(image.data, image.bytes));
  labels_.push_back(image.label);
  ids_.emplace_back(image.id);
}

void ShardWriter::flush() {
  file_.handle().write_at(file_.end() + flushed_, buffer_.data(), buffer_.size());
  flushed_ += buffer_.size();
  buffer_.clear();
}

template <class T>
void ShardWriter::put(const std::string& name, const std::vector<T>& values) {
  file_.write(name, values);
  file_.set_integers(name, kCrcAttribute, {crc32c(values.data(), values.size() * sizeof(T))});
}

void ShardWriter::put_text(const std::string& name, const std::vector<std::string>& values) {
  file_.write_text(name, values);
  const std::string packed = h5::pack_text(values).bytes;
  file_.set_integers(name, kCrcAttribute, {crc32c(packed.data(), packed.size())});
}

void ShardWriter::finish() {
  PAL_DATA_CHECK(!crcs_.empty(), partial_.target() + " would have no samples", "", "give it at least one");
  flush();
  file_.set_integers("/", "pal_format", {kVersion});
  file_.set_text("/", "encoding", spec_.encoding == Encoding::raw ? "raw" : "jpeg");
  file_.set_integers("/", "shape", {spec_.shape.begin(), spec_.shape.end()});
  if (!spec_.split.empty()) file_.set_text("/", "split", spec_.split);
  file_.make_group("images");
  file_.describe(kBytes, h5::Type::u8, static_cast<int64_t>(flushed_), 1);
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
  file_.handle().sync();
  file_.handle() = FileHandle();
  offsets_ = {};   // many shards may wait for their publication
  crcs_ = {};
  labels_ = {};
  ids_ = {};
  buffer_ = {};
}

void ShardWriter::publish() { partial_.publish(); }

}  // namespace pal
