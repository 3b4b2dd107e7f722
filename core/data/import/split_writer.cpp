#include "core/data/import/split_writer.h"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "kernels/base/error.h"

namespace pal::data {
namespace fs = std::filesystem;

std::vector<std::string> split_files(const std::string& out, const std::string& split, int shards) {
  PAL_CHECK(fs::path(out).extension() == ".h5", "the name of the output must end with .h5", out,
            "for example data/set.h5");
  const std::string stem = out.substr(0, out.size() - 3) + (split.empty() || split == "train" ? "" : "-" + split);
  if (shards == 1) return {stem + ".h5"};
  std::vector<std::string> files;
  for (int k = 0; k < shards; ++k) {
    char number[32];
    std::snprintf(number, sizeof number, "-%05d-of-%05d.h5", k, shards);
    files.push_back(stem + number);
  }
  return files;
}

void check_outputs(const std::vector<std::string>& files, Overwrite overwrite) {
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
    check_outputs(split_files(options.out, split.name, shards), options.overwrite);
    total_ += split.samples;
  }
}

void SplitWriter::begin(const ShardSpec& spec) {
  const PlannedSplit& split = plan_[report_.splits.size()];
  spec_ = spec;
  spec_.split = split.name;
  report_.classes = spec.classes;
  report_.splits.push_back({split.name, split_files(options_.out, split.name, options_.shards.value_or(1))});
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

}  // namespace pal::data
