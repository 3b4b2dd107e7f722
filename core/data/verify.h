// verify: reads every byte of a data set and lists what is damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pal::data {

struct VerifyReport {
  int64_t samples = 0, image_bytes = 0;  // checked
  int64_t bad_samples = 0, bad_files = 0;
  std::vector<std::string> complaints;  // a sentence each, at most as many as asked for

  bool good() const { return bad_samples == 0 && bad_files == 0; }
};

// Checks every offset, label, checksum and JPEG header of every shard, and that the shards belong together. A bad
// sample or shard does not stop it.
// progress(done, total) counts samples and is called now and then.
VerifyReport verify_dataset(const std::vector<std::string>& patterns, size_t max_complaints,
                            const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace pal::data
