#include "core/data/import/split_writer.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <utility>

#include "core/data/import/import_internal.h"
#include "core/io/csv.h"
#include "kernels/base/error.h"
#include "kernels/base/hash.h"

namespace pal::data {
namespace fs = std::filesystem;

ImportedSplit planned_split(const std::string& out, const std::string& split, int shards) {
  PAL_CHECK(fs::path(out).extension() == ".h5", "the name of the output must end with .h5", out,
            "for example data/set.h5");
  const std::string stem = out.substr(0, out.size() - 3) + (split.empty() || split == "train" ? "" : "-" + split);
  if (shards == 1) return {split, stem + ".h5", {stem + ".h5"}};
  std::vector<std::string> files;
  for (int k = 0; k < shards; ++k) {
    char number[32];
    std::snprintf(number, sizeof number, "-%05d-of-%05d.h5", k, shards);
    files.push_back(stem + number);
  }
  return {split, stem + ".h5", std::move(files)};
}

namespace {
// The files that split.data names on the disk, of this import and of an earlier one.
std::vector<std::string> existing_files(const ImportedSplit& split) {
  std::vector<std::string> files = shard_files(split.data);
  if (fs::exists(split.data)) files.insert(files.begin(), split.data);
  return files;
}
}  // namespace

void remove_others(const ImportedSplit& split) {
  for (const std::string& file : existing_files(split)) {
    if (std::find(split.files.begin(), split.files.end(), file) == split.files.end()) fs::remove(file);
  }
}

void check_outputs(const ImportedSplit& split, Overwrite overwrite) {
  std::vector<std::string> files = split.files;
  for (std::string& file : existing_files(split)) files.push_back(std::move(file));
  for (const std::string& file : files) {
    PAL_CHECK(!fs::is_directory(file), "the output is a folder", file, "name a file");
    PAL_CHECK(overwrite == Overwrite::replace || !fs::exists(file), "the output exists already", file,
              "give --force to replace it");
  }
}

SplitWriter::SplitWriter(const ImportOptions& options, std::vector<PlannedSplit> plan)
    : options_(options), plan_(std::move(plan)) {
  const int shards = options.shards.value_or(1);
  PAL_CHECK(shards >= 1 && shards <= 99999, "the number of shards is {}", shards, "give 1 to 99999");
  for (const PlannedSplit& split : plan_) {
    PAL_CHECK(shards <= split.samples, "{} shards are more than there are " + split.name + " samples", shards,
              "give at most " + std::to_string(split.samples));
    check_outputs(planned_split(options.out, split.name, shards), options.overwrite);
    total_ += split.samples;
  }
}

void SplitWriter::begin(const ShardSpec& spec) {
  if (const fs::path folder = fs::path(options_.out).parent_path(); !folder.empty()) {
    std::error_code failure;
    fs::create_directories(folder, failure);
    PAL_DATA_CHECK(!failure, "the folder " + folder.string() + " cannot be made", failure.message(),
                   "check the path and its permissions");
  }
  const PlannedSplit& split = plan_[report_.splits.size()];
  spec_ = spec;
  spec_.split = split.name;
  report_.classes = spec.classes;
  report_.splits.push_back(planned_split(options_.out, split.name, options_.shards.value_or(1)));
}

void SplitWriter::append(const StoredImage& image) {
  ImportedSplit& split = report_.splits.back();
  const int64_t planned = plan_[report_.splits.size() - 1].samples;
  PAL_ASSERT(split.samples < planned, "more samples than planned");
  // Shard k has the samples [k · planned / n, (k + 1) · planned / n).
  const auto shards = static_cast<int64_t>(split.files.size());
  const auto shard_begin = [&](int64_t k) { return k * planned / shards; };
  int64_t k = split.samples * shards / planned;
  while (split.samples >= shard_begin(k + 1)) ++k;
  if (split.samples == shard_begin(k)) writers_.emplace_back(split.files[static_cast<size_t>(k)], spec_);
  writers_.back().append(image);
  ++split.samples;
  split.image_bytes += static_cast<int64_t>(image.bytes);
  if (split.samples == shard_begin(k + 1)) writers_.back().finish();
  ++done_;
  if (options_.progress && (done_ % 1000 == 0 || done_ == total_)) options_.progress(done_, total_);
}

ImportReport SplitWriter::publish() {
  PAL_ASSERT(done_ == total_, "fewer samples than planned");
  for (ShardWriter& writer : writers_) writer.publish();
  for (const ImportedSplit& split : report_.splits) remove_others(split);
  return std::move(report_);
}

std::string source_folder(const std::string& source, const std::string& usual, const std::string& file) {
  PAL_DATA_CHECK(fs::is_directory(source), "this folder does not exist", source,
                 "give the folder with the unpacked files");
  if (fs::exists(fs::path(source) / file)) return source;
  const fs::path inside = fs::path(source) / usual;
  PAL_DATA_CHECK(fs::exists(inside / file), source + " does not hold", file, "give the folder with the unpacked files");
  return inside.string();
}

// The test split of --test-fraction. Units are images, or groups of images that stay on one side (--groups). Units of
// one class are ordered by a hash of seed and name, and the first ones are the test split, so that every class has its
// share and the order of the files does not matter. The share that whole units leave over goes to the next class. Where
// some images have a label, those without one stay in the training split: no result could be measured on them.
namespace {

// The images of a source in another order.
class DividedSource final : public ImageSource {
 public:
  DividedSource(std::unique_ptr<ImageSource> source, const std::vector<char>& in_test) : source_(std::move(source)) {
    for (const char test : {0, 1}) {
      const auto begin = static_cast<int64_t>(order_.size());
      for (size_t i = 0; i < in_test.size(); ++i) {
        if (in_test[i] != test) continue;
        order_.push_back(static_cast<int64_t>(i));
        images.push_back(std::move(source_->images[i]));
      }
      splits.push_back({test ? "test" : "train", begin, static_cast<int64_t>(order_.size())});
    }
    // A source finds an image by its place and by its name; both stay where they were.
    source_->images = images;
    for (size_t k = 0; k < order_.size(); ++k) source_->images[static_cast<size_t>(order_[k])] = images[k];
    classes = source_->classes;
    ignored = source_->ignored;
    notes = source_->notes;
  }
  void read(int64_t image, std::vector<uint8_t>& file) const override {
    source_->read(order_[static_cast<size_t>(image)], file);
  }

 private:
  std::unique_ptr<ImageSource> source_;
  std::vector<int64_t> order_;  // image → image of the source
};

struct Unit {
  uint64_t key = 0;
  std::vector<size_t> images;
};

uint64_t key_of(uint64_t seed, const std::string& name) {
  uint64_t key = pal::mix(0, seed);
  for (const char c : name) key = pal::mix(key, static_cast<unsigned char>(c));
  return key;
}

std::map<std::string, Unit> make_units(ImageSource& source, const ImportOptions& options) {
  std::map<std::string, Unit> units;
  const io::LabelsByFile groups(options.groups, options.groups.empty() ? std::vector<io::NamedLabel>()
                                                                       : io::read_manifest_column(options.groups).rows);
  int64_t alone = 0;
  for (size_t i = 0; i < source.images.size(); ++i) {
    const std::string& id = source.images[i].id;
    const std::string* group = groups.find(id);
    const bool grouped = group && !group->empty();
    alone += !grouped;
    // A group and an image may have one name: their first letters differ.
    units[grouped ? "g" + *group : "i" + id].images.push_back(i);
  }
  for (auto& [name, unit] : units) unit.key = key_of(options.split_seed, name);
  if (options.groups.empty()) return units;
  PAL_DATA_CHECK(alone < static_cast<int64_t>(source.images.size()),
                 options.groups + " names none of the images; the first image is", source.images[0].id,
                 "each row names a file and its group");
  if (alone > 0)
    source.notes.push_back(options.groups + ": images without a group: " + std::to_string(alone) +
                           "; each of them counts as a group of its own");
  return units;
}

// The most frequent label of a unit, the smallest of several.
int64_t class_of(const ImageSource& source, const Unit& unit) {
  std::map<int64_t, int64_t> counts;
  for (const size_t i : unit.images) ++counts[source.images[i].label];
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace

std::unique_ptr<ImageSource> with_test_split(std::unique_ptr<ImageSource> source, const ImportOptions& options) {
  if (options.test_fraction == 0) {
    PAL_CHECK(options.groups.empty(), "--groups divides a set in two, but there is no --test-fraction", options.groups,
              "give for instance --test-fraction 0.2");
    return source;
  }
  PAL_CHECK(options.test_fraction > 0 && options.test_fraction < 1, "--test-fraction is {}", options.test_fraction,
            "give a number between 0 and 1");
  PAL_CHECK(source->splits.size() == 1, "the source has a test split already", options.source,
            "leave --test-fraction out");
  std::map<int64_t, std::vector<Unit>> by_class;
  for (auto& [name, unit] : make_units(*source, options)) by_class[class_of(*source, unit)].push_back(std::move(unit));
  if (by_class.size() > 1) by_class.erase(-1);
  std::vector<char> in_test(source->images.size(), 0);
  double wanted = 0;
  for (auto& [label, units] : by_class) {
    std::sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) {
      return std::pair(a.key, a.images[0]) < std::pair(b.key, b.images[0]);
    });
    for (const Unit& unit : units) wanted += options.test_fraction * static_cast<double>(unit.images.size());
    for (size_t u = 0; u + 1 < units.size(); ++u) {  // one unit of a class stays in the training split
      const auto images = static_cast<double>(units[u].images.size());
      if (wanted < images / 2) break;
      for (const size_t i : units[u].images) in_test[i] = 1;
      wanted -= images;
    }
  }
  PAL_DATA_CHECK(std::find(in_test.begin(), in_test.end(), 1) != in_test.end(),
                 "the test split would have no images; --test-fraction is {}", options.test_fraction,
                 "give a larger fraction");
  return std::make_unique<DividedSource>(std::move(source), in_test);
}

}  // namespace pal::data
