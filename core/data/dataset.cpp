#include "core/data/dataset.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "core/data/feature_set.h"
#include "core/data/shard_reader.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

namespace fs = std::filesystem;

// The parts of x-00002-of-00004.h5.
struct ShardName {
  std::string stem, number, total;
};
std::optional<ShardName> shard_name(const std::string& file) {
  constexpr std::string_view kEnding = "-00000-of-00000.h5";  // 0: a digit
  if (file.size() < kEnding.size()) return std::nullopt;
  const std::string stem = file.substr(0, file.size() - kEnding.size()), ending = file.substr(stem.size());
  const bool numbered = std::equal(ending.begin(), ending.end(), kEnding.begin(), [](char c, char expected) {
    return expected == '0' ? c >= '0' && c <= '9' : c == expected;
  });
  if (!numbered) return std::nullopt;
  return ShardName{stem, ending.substr(1, 5), ending.substr(10, 5)};
}

// The names give the number of shards: without this check a missing or foreign shard goes unnoticed.
void check_complete(const std::vector<std::string>& files) {
  std::map<std::string, std::set<std::string>> totals, numbers;  // by the text before the number
  for (const std::string& file : files) {
    const std::optional<ShardName> name = shard_name(file);
    if (!name) continue;
    totals[name->stem].insert(name->total);
    numbers[name->stem].insert(name->number);
  }
  for (const auto& [stem, total] : totals) {
    PAL_DATA_CHECK(total.size() == 1, "the folder holds shards of two imports", stem + "-*.h5",
                   "remove the shards of the older import");
    const int64_t there = static_cast<int64_t>(numbers[stem].size()), expected = std::stoll(*total.begin());
    PAL_DATA_CHECK(there == expected, "shards are missing",
                   stem + "-*.h5 has " + std::to_string(there) + " of " + std::to_string(expected),
                   "copy or import them again");
  }
}

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 29;
}

// Of the images of all shards; the median is that of the shards' medians, each counted by its images.
SideRange range_of(const std::vector<ShardReader>& shards, SideRange ImageSides::*side) {
  SideRange all = shards.front().sides().*side;
  std::vector<std::pair<int32_t, int64_t>> medians;
  int64_t total = 0, passed = 0;
  for (const ShardReader& shard : shards) {
    const SideRange one = shard.sides().*side;
    if (one.max == 0) return {};
    all = {std::min(all.min, one.min), 0, std::max(all.max, one.max)};
    medians.emplace_back(one.median, shard.size());
    total += shard.size();
  }
  std::sort(medians.begin(), medians.end());
  for (const auto& [median, images] : medians) {
    if (2 * passed < total) all.median = median;
    passed += images;
  }
  return all;
}

class ShardedDataset final : public Dataset {
 public:
  explicit ShardedDataset(const std::vector<std::string>& files) {
    shards_.reserve(files.size());
    for (const std::string& file : files) {
      shards_.emplace_back(file);
      check_agreement(shards_.front(), shards_.back());
      begin_.push_back(begin_.back() + shards_.back().size());
    }
    shape_ = shards_.front().shape();
    for (const ShardReader& shard : shards_) {
      for (size_t axis = 0; axis < 3; ++axis) {
        if (shape_[axis] != shard.shape()[axis]) shape_[axis] = 0;
      }
    }
    gather_labels();
    compute_fingerprint();
  }

  int64_t size() const override { return begin_.back(); }
  Encoding encoding() const override { return shards_.front().encoding(); }
  std::vector<int32_t> shape() const override { return shape_; }
  ImageSides sides() const override {
    return {range_of(shards_, &ImageSides::height), range_of(shards_, &ImageSides::width)};
  }
  const std::vector<int64_t>& labels() const override { return labels_; }
  const std::vector<std::string>& classes() const override { return shards_.front().classes(); }
  std::vector<int64_t> parents() const override { return shards_.front().parents(); }
  uint64_t fingerprint() const override { return fingerprint_; }

  std::string id(int64_t sample) const override {
    const size_t k = shard_of(sample);
    return shards_[k].id(sample - begin_[k]);
  }

  std::string where(int64_t sample) const override {
    const size_t k = shard_of(sample);
    return shards_[k].where(sample - begin_[k]);
  }

  uint32_t checksum(int64_t sample) const override {
    const size_t k = shard_of(sample);
    return shards_[k].image_crc(sample - begin_[k]);
  }

  void read(int64_t sample, std::vector<uint8_t>& bytes) const override {
    const size_t k = shard_of(sample);
    shards_[k].read(sample - begin_[k], bytes);
  }

  void will_read(int64_t begin, int64_t end) const override {
    while (begin < end) {
      const size_t k = shard_of(begin);
      const int64_t last = std::min(end, begin_[k + 1]);
      shards_[k].will_read(begin - begin_[k], last - begin_[k]);
      begin = last;
    }
  }

  kernels::ImageView image(int64_t sample, const std::vector<uint8_t>& bytes) const override {
    const std::vector<int32_t>& shape = shards_[shard_of(sample)].shape();
    PAL_ASSERT(encoding() == Encoding::raw, "image() of encoded bytes");
    PAL_ASSERT(bytes.size() == size_t(shape[0]) * size_t(shape[1]) * size_t(shape[2]),
               "image() of bytes that are not the sample's");
    return {bytes.data(), shape[0], shape[1], shape[2]};
  }

 private:
  static void check_agreement(const ShardReader& first, const ShardReader& next) {
    const std::string both = first.path() + " and " + next.path();
    PAL_DATA_CHECK(first.classes() == next.classes(), "shards have different classes", both,
                   "use shards of one import");
    PAL_DATA_CHECK(first.parents() == next.parents(), "shards have different class trees", both,
                   "use shards of one import");
    PAL_DATA_CHECK(first.encoding() == next.encoding(), "shards have different encodings", both,
                   "use shards of one import");
    PAL_DATA_CHECK(first.split() == next.split(),
                   "shards belong to different splits (" + first.split() + ", " + next.split() + ")", both,
                   "name the files of one split");
  }

  // Labels of all shards; a shard without labels counts as unknown.
  void gather_labels() {
    const bool any =
        std::any_of(shards_.begin(), shards_.end(), [](const ShardReader& s) { return !s.labels().empty(); });
    if (!any) return;
    labels_.reserve(static_cast<size_t>(size()));
    for (ShardReader& shard : shards_) {
      std::vector<int64_t> labels = shard.take_labels();
      labels.resize(static_cast<size_t>(shard.size()), -1);
      labels_.insert(labels_.end(), labels.begin(), labels.end());
    }
  }

  void compute_fingerprint() {
    uint64_t hash = mix(mix(1, static_cast<uint64_t>(size())), static_cast<uint64_t>(encoding()));
    for (const int32_t side : shape_) hash = mix(hash, static_cast<uint64_t>(side));
    for (size_t k = 0; k < shards_.size(); ++k) {
      for (int64_t i = 0; i < shards_[k].size(); ++i) {
        const int64_t label = labels_.empty() ? -1 : labels_[static_cast<size_t>(begin_[k] + i)];
        hash = mix(mix(hash, shards_[k].image_bytes(i) << 32 ^ shards_[k].image_crc(i)), static_cast<uint64_t>(label));
      }
    }
    fingerprint_ = hash;
  }

  size_t shard_of(int64_t sample) const {
    PAL_ASSERT(sample >= 0 && sample < size(), "sample " + std::to_string(sample) + " of " + std::to_string(size()));
    return static_cast<size_t>(std::upper_bound(begin_.begin(), begin_.end(), sample) - begin_.begin()) - 1;
  }

  std::vector<ShardReader> shards_;
  std::vector<int64_t> begin_ = {0};  // (shards + 1) first sample of each shard
  std::vector<int32_t> shape_;
  std::vector<int64_t> labels_;
  uint64_t fingerprint_ = 0;
};

}  // namespace

std::vector<std::string> sample_names(const Dataset& data) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < data.size(); ++i) names.push_back(data.id(i));
  return names;
}

std::string overlap_warning(const Dataset& train, const Dataset& test) {
  if (train.fingerprint() == test.fingerprint()) return "the training set and the test set are the same images";
  std::unordered_set<uint32_t> seen;
  for (int64_t i = 0; i < train.size(); ++i) seen.insert(train.checksum(i));
  int64_t shared = 0, last = 0;
  for (int64_t i = 0; i < test.size(); ++i) {
    if (test.checksum(i) == 0 || seen.count(test.checksum(i)) == 0) continue;
    ++shared;
    last = i;
  }
  if (100 * shared <= test.size()) return "";
  return std::to_string(shared) + " of " + std::to_string(test.size()) +
         " test images are also in the training set, for instance " + test.id(last) +
         "; accuracies on them say little about new images";
}

std::vector<std::string> expand_glob(const std::string& pattern) {
  glob_t found{};
  ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return files;
}

std::vector<std::string> shard_files(const std::string& name) {
  std::vector<std::string> files;
  const fs::path folder = fs::path(name).parent_path(), stem = fs::path(name).stem();
  std::error_code failure;
  if (!name.ends_with(".h5")) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.empty() ? "." : folder, failure)) {
    const std::string file = entry.path().filename().string();
    const std::optional<ShardName> shard = shard_name(file);
    if (shard && shard->stem == stem.string())
      files.push_back(name.substr(0, name.size() - 3) + file.substr(stem.string().size()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

namespace {

std::vector<std::string> files_of(const std::string& pattern) {
  if (fs::is_regular_file(pattern)) return {pattern};
  std::vector<std::string> files;
  if (fs::is_directory(pattern)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(pattern)) {
      if (entry.path().extension() == ".h5") files.push_back(entry.path().string());
    }
    PAL_DATA_CHECK(!files.empty(), "the folder holds no *.h5 files", pattern,
                   "give a data set made by `pal data import`");
    return files;
  }
  PAL_DATA_CHECK(!fs::exists(pattern), "this is neither a file nor a folder", pattern,
                 "give a data set made by `pal data import`");
  files = expand_glob(pattern);
  if (files.empty()) files = shard_files(pattern);
  PAL_DATA_CHECK(!files.empty(), "this data set does not exist", pattern,
                 "check the path, or make it with `pal data import`");
  return files;
}

}  // namespace

std::vector<std::string> dataset_files(const std::string& pattern) { return dataset_files(std::vector{pattern}); }

std::vector<std::string> dataset_files(const std::vector<std::string>& patterns) {
  if (patterns.size() == 1 && fs::is_regular_file(patterns[0])) return patterns;  // one shard of many is a set, too
  std::set<std::string> sorted;
  for (const std::string& pattern : patterns) {
    for (std::string& file : files_of(pattern)) sorted.insert(std::move(file));
  }
  const std::vector<std::string> files(sorted.begin(), sorted.end());
  check_complete(files);
  return files;
}

std::shared_ptr<Dataset> Dataset::open(const std::string& pattern) { return open(std::vector{pattern}); }

std::shared_ptr<Dataset> Dataset::open(const std::vector<std::string>& patterns) {
  if (patterns.size() == 1 && is_feature_file(patterns[0])) return open_features(patterns[0]);
  return std::make_shared<ShardedDataset>(dataset_files(patterns));
}

}  // namespace pal::data
