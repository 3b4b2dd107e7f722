// sampler: which samples make the global batch of a step; every rank derives the same plan from (seed, step).
//
// An epoch of N samples is ceil(N / global_batch) steps of nearly equal size (they differ by at most one sample), and
// each sample comes exactly once per epoch, for any W. The order is a counter-based permutation of (seed, epoch).
#pragma once

#include <cstdint>
#include <vector>

namespace pal {

struct EpochPlan {
  int64_t samples = 0;        // N (of the subset trained on)
  int64_t global_batch = 0;
  uint64_t seed = 0;

  int64_t steps_per_epoch() const { return (samples + global_batch - 1) / global_batch; }
};

// The samples of step `step` (from 0), in batch order. O(batch) time and memory: the permutation is a Feistel cipher.
std::vector<int64_t> batch_samples(const EpochPlan& plan, int64_t step);
// Where each rank's positions begin in a batch of n: W + 1 numbers; sizes differ by at most one.
std::vector<int64_t> rank_slices(int64_t n, int ranks);

}  // namespace pal
