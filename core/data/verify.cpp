#include "core/data/verify.h"

#include <memory>

#include "core/data/dataset.h"
#include "core/data/image/jpeg_header.h"
#include "core/data/shard_reader.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

void check_jpeg(const ShardReader& shard, int64_t sample, const std::vector<uint8_t>& bytes) {
  try {
    inspect_jpeg(bytes.data(), bytes.size());
  } catch (const Error& error) {
    throw Error(error.code(),
                shard.path() + ": sample " + std::to_string(sample) + " (" + shard.id(sample) + "): " + error.what());
  }
}

}  // namespace

VerifyReport verify_dataset(const std::vector<std::string>& patterns, size_t max_complaints,
                            const std::function<void(int64_t done, int64_t total)>& progress) {
  VerifyReport report;
  const auto complaint_of = [&](const auto& call) {  // whether there was one
    try {
      call();
      return false;
    } catch (const Error& error) {
      if (error.code() != Exit::data) throw;
      if (report.complaints.size() < max_complaints) report.complaints.push_back(error.what());
      return true;
    }
  };

  std::vector<std::unique_ptr<ShardReader>> shards;
  int64_t total = 0;
  for (const std::string& file : dataset_files(patterns)) {
    const bool bad = complaint_of([&] {
      shards.push_back(std::make_unique<ShardReader>(file));
      shards.back()->check_ids();
    });
    if (bad) ++report.bad_files;
    total = 0;
    for (const auto& shard : shards) total += shard->size();
  }
  if (report.bad_files == 0 && complaint_of([&] { Dataset::open(patterns); })) ++report.bad_files;

  std::vector<uint8_t> bytes;
  progress(0, total);
  for (const auto& shard : shards) {
    for (int64_t i = 0; i < shard->size(); ++i) {
      const bool bad = complaint_of([&] {
        shard->read(i, bytes);
        if (shard->encoding() == Encoding::jpeg) check_jpeg(*shard, i, bytes);
      });
      if (bad) ++report.bad_samples;
      report.image_bytes += static_cast<int64_t>(shard->image_bytes(i));
      if (++report.samples % 1000 == 0 || report.samples == total) progress(report.samples, total);
    }
  }
  return report;
}

}  // namespace pal::data
