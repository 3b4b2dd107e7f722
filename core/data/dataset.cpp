#include "core/data/dataset.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/data/feature_set.h"
#include "core/data/shard_reader.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

namespace fs = std::filesystem;

// Names like x-00002-of-00004.h5 give the number of shards: without this check a missing or foreign shard goes
// unnoticed.
void check_complete(const std::vector<std::string>& files) {
  constexpr std::string_view kEnding = "-00000-of-00000.h5";     // 0: a digit
  std::map<std::string, std::set<std::string>> totals, numbers;  // by the text before the number
  for (const std::string& file : files) {
    if (file.size() < kEnding.size()) continue;
    const std::string stem = file.substr(0, file.size() - kEnding.size()), ending = file.substr(stem.size());
    const bool numbered = std::equal(ending.begin(), ending.end(), kEnding.begin(), [](char c, char expected) {
      return expected == '0' ? c >= '0' && c <= '9' : c == expected;
    });
    if (!numbered) continue;
    totals[stem].insert(ending.substr(10, 5));
    numbers[stem].insert(ending.substr(1, 5));
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

std::vector<std::string> expand_glob(const std::string& pattern) {
  glob_t found{};
  ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return files;
}

std::vector<std::string> dataset_files(const std::string& pattern) {
  if (fs::is_regular_file(pattern)) return {pattern};
  std::vector<std::string> files;
  if (fs::is_directory(pattern)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(pattern)) {
      if (entry.path().extension() == ".h5") files.push_back(entry.path().string());
    }
    PAL_DATA_CHECK(!files.empty(), "the folder holds no *.h5 files", pattern,
                   "give a data set made by `pal data import`");
  } else {
    PAL_DATA_CHECK(!fs::exists(pattern), "this is neither a file nor a folder", pattern,
                   "give a data set made by `pal data import`");
    files = expand_glob(pattern);
    PAL_DATA_CHECK(!files.empty(), "this data set does not exist", pattern,
                   "check the path, or make it with `pal data import`");
  }
  std::sort(files.begin(), files.end());
  check_complete(files);
  return files;
}

std::shared_ptr<Dataset> Dataset::open(const std::string& pattern) {
  if (is_feature_file(pattern)) return open_features(pattern);
  return std::make_shared<ShardedDataset>(dataset_files(pattern));
}

}  // namespace pal::data
