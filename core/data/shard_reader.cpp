#include "core/data/shard_reader.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/data/shard_format.h"
#include "core/io/crc32c.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

using namespace shard_format;
constexpr const char* kAgain = "copy or import it again";
constexpr int64_t kMaxSide = 1 << 16;

// The stored checksum of an array, −1 where there is none (files written by others).
int64_t stored_crc(const io::h5::File& file, const std::string& name) {
  if (!file.has_attribute(name, kCrcAttribute)) return -1;
  const std::vector<int64_t> values = file.integers(name, kCrcAttribute);
  return values.size() == 1 ? values[0] : -2;
}

void check_crc(const std::string& path, const std::string& name, int64_t stored, uint32_t computed) {
  PAL_DATA_CHECK(stored == -1 || stored == int64_t{computed}, path + ": data set {} does not match its CRC32C", name,
                 std::string("the file is damaged, ") + kAgain);
}

template <class T>
std::vector<T> read_checked(const io::h5::File& file, const std::string& name) {
  std::vector<T> values = file.read<T>(name);
  check_crc(file.handle().path(), name, stored_crc(file, name), io::crc32c(values.data(), values.size() * sizeof(T)));
  return values;
}

std::vector<std::string> read_text_checked(const io::h5::File& file, const std::string& name) {
  std::vector<std::string> values = file.read_text(name);
  // Packed again rather than kept: only the stored width can differ, and files of other programs have no checksum.
  const std::string packed = io::h5::pack_text(values).bytes;
  check_crc(file.handle().path(), name, stored_crc(file, name), io::crc32c(packed.data(), packed.size()));
  return values;
}

// Each walk toward the root ends at a root or at a node of an earlier walk; meeting its own path is a cycle.
void check_acyclic(const std::string& path, const std::vector<int64_t>& parents) {
  std::vector<int64_t> walk(parents.size(), -1);  // which walk met the node first
  for (size_t start = 0; start < parents.size(); ++start) {
    for (auto node = static_cast<int64_t>(start); node >= 0; node = parents[static_cast<size_t>(node)]) {
      int64_t& met = walk[static_cast<size_t>(node)];
      PAL_DATA_CHECK(met != static_cast<int64_t>(start), path + ": parents has a cycle at node {}", node,
                     "make it a tree");
      if (met >= 0) break;
      met = static_cast<int64_t>(start);
    }
  }
}

std::string hex(uint32_t value) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text(8, '0');
  for (int i = 7; i >= 0; --i, value >>= 4) text[static_cast<size_t>(i)] = kDigits[value & 15];
  return text;
}

}  // namespace

ShardReader::ShardReader(const std::string& path) : ShardReader(io::h5::File::open(path)) {}

ShardReader::ShardReader(io::h5::File file) {
  read_header(file);
  check_images(file);
  check_classes(file);
  handle_ = std::move(file.handle());
}

void ShardReader::read_header(const io::h5::File& file) {
  const std::string& path = file.handle().path();
  PAL_DATA_CHECK(file.has_attribute("/", "pal_format"), path + " is not a data set of PAL",
                 "it has no attribute pal_format", "make a data set with `pal data import`");
  const std::vector<int64_t> format = file.integers("/", "pal_format");
  PAL_DATA_CHECK(format == std::vector<int64_t>{kVersion}, path + ": pal_format {} is not supported",
                 format.empty() ? -1 : format[0], "this program reads format " + std::to_string(kVersion));
  const std::string encoding = file.text("/", "encoding");
  PAL_DATA_CHECK(encoding == "raw" || encoding == "jpeg", path + ": encoding {} is not supported", encoding,
                 "it must be raw or jpeg");
  encoding_ = encoding == "raw" ? Encoding::raw : Encoding::jpeg;
  if (file.has_attribute("/", "split")) split_ = file.text("/", "split");

  const std::vector<int64_t> shape = file.integers("/", "shape");
  PAL_DATA_CHECK(shape.size() == 3, path + ": the attribute shape has {} numbers", shape.size(),
                 "it must have height, width, channels");
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t low = encoding_ == Encoding::raw ? 1 : 0, high = axis == 2 ? 3 : kMaxSide;
    PAL_DATA_CHECK(shape[axis] >= low && shape[axis] <= high && !(axis == 2 && shape[axis] == 2),
                   path + ": the attribute shape holds the impossible value {}", shape[axis],
                   "raw images have 1 or 3 channels and fixed sides");
    shape_.push_back(static_cast<int32_t>(shape[axis]));
  }
  if (encoding_ == Encoding::raw) sides_ = {{shape_[0], shape_[0], shape_[0]}, {shape_[1], shape_[1], shape_[1]}};
  if (!file.has_attribute("/", "sides")) return;
  const std::vector<int64_t> sides = file.integers("/", "sides");
  PAL_DATA_CHECK(sides.size() == 6, path + ": the attribute sides has {} numbers", sides.size(), "it must have 6");
  for (const auto& [range, at] : {std::pair(&sides_.height, 0), std::pair(&sides_.width, 3)}) {
    PAL_DATA_CHECK(
        sides[at] >= 1 && sides[at] <= sides[at + 1] && sides[at + 1] <= sides[at + 2] && sides[at + 2] <= kMaxSide,
        path + ": the attribute sides holds impossible values; the first is", sides[at], kAgain);
    *range = {static_cast<int32_t>(sides[at]), static_cast<int32_t>(sides[at + 1]),
              static_cast<int32_t>(sides[at + 2])};
  }
}

void ShardReader::check_images(const io::h5::File& file) {
  const std::string& path = file.handle().path();
  images_ = file.extent(kBytes, io::h5::Type::u8);
  crcs_ = read_checked<uint32_t>(file, kCrcs);
  offsets_ = read_checked<uint64_t>(file, kOffsets);
  PAL_DATA_CHECK(!crcs_.empty(), path + " has no samples", "", "import some");
  PAL_DATA_CHECK(offsets_.size() == crcs_.size() + 1, path + ": images/offsets has length {}", offsets_.size(),
                 "it must be one more than images/crc32c (" + std::to_string(crcs_.size()) + ")");
  PAL_DATA_CHECK(offsets_[0] == 0, path + ": images/offsets begins with {} instead of 0", offsets_[0], kAgain);
  PAL_DATA_CHECK(offsets_.back() == static_cast<uint64_t>(images_.count), path + ": images/offsets ends with {}",
                 offsets_.back(), "images/bytes has " + std::to_string(images_.count) + " bytes; " + kAgain);
  const uint64_t raw_bytes = uint64_t(shape_[0]) * uint64_t(shape_[1]) * uint64_t(shape_[2]);
  for (size_t i = 0; i < crcs_.size(); ++i) {
    // Ascending from 0 to the end: every offset is in range.
    PAL_DATA_CHECK(offsets_[i + 1] > offsets_[i], path + ": images/offsets does not ascend at sample {}", i, kAgain);
    PAL_DATA_CHECK(encoding_ != Encoding::raw || offsets_[i + 1] - offsets_[i] == raw_bytes,
                   path + ": sample " + std::to_string(i) + " has {} bytes", offsets_[i + 1] - offsets_[i],
                   "the shape requires " + std::to_string(raw_bytes) + "; " + kAgain);
    PAL_DATA_CHECK(offsets_[i + 1] - offsets_[i] <= kMaxImageBytes,
                   path + ": sample " + std::to_string(i) + " has {} bytes", offsets_[i + 1] - offsets_[i],
                   "an image has at most 2 GB; " + std::string(kAgain));
  }
  if (!file.has(kIds)) return;
  ids_ = file.extent(kIds, io::h5::Type::text);
  ids_crc_ = stored_crc(file, kIds);
  PAL_DATA_CHECK(ids_.count == size(), path + ": ids has length {}", ids_.count,
                 "there are " + std::to_string(size()) + " samples");
}

void ShardReader::check_classes(const io::h5::File& file) {
  const std::string& path = file.handle().path();
  if (file.has(kLabels)) {
    labels_ = read_checked<int64_t>(file, kLabels);
    PAL_DATA_CHECK(labels_.size() == crcs_.size(), path + ": labels has length {}", labels_.size(),
                   "there are " + std::to_string(size()) + " samples");
    classes_ = read_text_checked(file, kClasses);
  } else if (file.has(kClasses)) {
    classes_ = read_text_checked(file, kClasses);
  }
  const auto classes = static_cast<int64_t>(classes_.size());
  for (size_t i = 0; i < labels_.size(); ++i) {
    if (labels_[i] >= -1 && labels_[i] < classes) continue;
    throw Error(Exit::data, path + ": sample " + std::to_string(i) + " has label " + std::to_string(labels_[i]) +
                                ", but there are " + std::to_string(classes) + " classes; correct the labels");
  }
  const std::unordered_set<std::string> names(classes_.begin(), classes_.end());
  PAL_DATA_CHECK(names.size() == classes_.size(), path + ": two classes have the same name", "", "rename one of them");

  if (!file.has(kParents)) return;
  parents_ = read_checked<int64_t>(file, kParents);
  const auto nodes = static_cast<int64_t>(parents_.size());
  PAL_DATA_CHECK(nodes >= classes, path + ": parents has length {}", nodes, "it needs an entry for each class");
  for (const int64_t parent : parents_) {
    PAL_DATA_CHECK(
        parent == -1 || (parent >= classes && parent < nodes), path + ": parents holds the impossible entry {}", parent,
        "a parent is -1 or an inner node (" + std::to_string(classes) + " to " + std::to_string(nodes - 1) + ")");
  }
  check_acyclic(path, parents_);
  if (!file.has(kParentNames)) return;
  parent_names_ = read_text_checked(file, kParentNames);
  PAL_DATA_CHECK(static_cast<int64_t>(parent_names_.size()) == nodes - classes, path + ": parent_names has length {}",
                 parent_names_.size(), "there are " + std::to_string(nodes - classes) + " inner nodes");
}

void ShardReader::read(int64_t sample, std::vector<uint8_t>& bytes) const {
  PAL_ASSERT(sample >= 0 && sample < size(), "sample " + std::to_string(sample) + " of " + path());
  bytes.resize(image_bytes(sample));
  if (!handle_.read_at(images_.offset + offsets_[at(sample)], bytes.data(), bytes.size())) {
    throw Error(Exit::data, path() + ": sample " + std::to_string(sample) +
                                " is beyond the end of the file, which was cut after it was opened; " + kAgain);
  }
  const uint32_t computed = io::crc32c(bytes.data(), bytes.size());
  if (computed != crcs_[at(sample)]) {
    throw Error(Exit::data, where(sample) + " does not match its CRC32C (stored " + hex(crcs_[at(sample)]) +
                                ", computed " + hex(computed) + "); the file is damaged, " + kAgain);
  }
}

std::string ShardReader::where(int64_t sample) const {
  return path() + ": sample " + std::to_string(sample) + " (" + id(sample) + ")";
}

std::string ShardReader::id(int64_t sample) const {
  if (ids_.count == 0) return std::to_string(sample);
  std::string item(static_cast<size_t>(ids_.item_bytes), '\0');
  const uint64_t offset = ids_.offset + static_cast<uint64_t>(sample * ids_.item_bytes);
  if (!handle_.read_at(offset, item.data(), item.size()))
    throw Error(Exit::data, path() + " ends within ids; " + kAgain);
  return io::h5::unpack_text(item.data(), ids_.item_bytes);
}

void ShardReader::check_ids() const {
  std::vector<char> block(1 << 20);
  const auto end = static_cast<uint64_t>(ids_.count * ids_.item_bytes);
  uint32_t crc = 0;
  for (uint64_t done = 0; done < end; done += block.size()) {
    const size_t n = std::min<uint64_t>(block.size(), end - done);
    if (!handle_.read_at(ids_.offset + done, block.data(), n))
      throw Error(Exit::data, path() + " ends within ids; " + kAgain);
    crc = io::crc32c(block.data(), n, crc);
  }
  if (ids_.count > 0) check_crc(path(), kIds, ids_crc_, crc);
}

}  // namespace pal::data
