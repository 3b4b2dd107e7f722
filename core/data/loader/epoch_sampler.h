// epoch_sampler: the samples of the global batch of a step; every rank computes the same list from (seed, step).
//
// An epoch of N samples is ceil(N / global_batch) steps of nearly equal size (they differ by at most one sample), and
// each sample comes exactly once per epoch, for any W. The order is a counter-based permutation of (seed, epoch):
//   full      of all samples: a cipher gives a nearly uniform random order, and every read is a random access
//   none      of the plan, for evaluation
//   windows   the data set is cut into runs of kRun samples, at other places in each epoch; the runs are shuffled, then
//             the samples inside each window of many runs. A disk reads runs, one window ahead of the batches.
#pragma once

#include <cstdint>
#include <vector>

namespace pal::data {

enum class Shuffle { full, windows, none };

struct EpochSpec {
  static constexpr int64_t kRun = 16;  // consecutive samples: a megabyte or two of JPEG

  int64_t samples = 0;  // N (of the subset trained on)
  int64_t global_batch = 0;
  uint64_t seed = 0;
  Shuffle shuffle = Shuffle::full;
  int64_t window = 16384;  // samples; a multiple of kRun

  int64_t steps_per_epoch() const { return (samples + global_batch - 1) / global_batch; }
};

// The samples of step `step` (from 0), in batch order. O(batch) time and memory: the permutation is a Feistel cipher.
std::vector<int64_t> batch_samples(const EpochSpec& plan, int64_t step);
// The same for the samples trained on: plan index → sample id; an empty subset: all samples.
std::vector<int64_t> batch_samples(const EpochSpec& plan, const std::vector<int64_t>& subset, int64_t step);
// The samples that a disk should read during step `step`: runs in their shuffled order, one window ahead. Empty without
// windows and at the end of an epoch.
struct SampleRange {
  int64_t begin = 0, end = 0;
};
std::vector<SampleRange> read_ahead(const EpochSpec& plan, int64_t step);

}  // namespace pal::data
