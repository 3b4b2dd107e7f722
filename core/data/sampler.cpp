// sampler: the permutation of an epoch and its cut into batches.
#include "core/data/sampler.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal {
namespace {

// A permutation of [0, n): a Feistel cipher on the pairs (l, r) of an a × b table that just covers [0, n), walked until
// it lands inside (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). Round keys come from the stream.
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t seed, uint64_t epoch) : n_(n) {
    a_ = static_cast<uint64_t>(std::ceil(std::sqrt(static_cast<double>(n))));
    b_ = (n + a_ - 1) / a_;
    Random random(seed, Purpose::shuffle, epoch);
    for (uint64_t& key : keys_) key = random.next_u64();
  }

  uint64_t operator()(uint64_t i) const {
    do i = encrypt(i);
    while (i >= n_);
    return i;
  }

 private:
  static constexpr int kRounds = 8;

  uint64_t encrypt(uint64_t i) const {
    uint64_t l = i / b_, r = i % b_;
    for (int k = 0; k < kRounds; k += 2) {
      l = add(l, scatter(r, keys_[k], a_), a_);
      r = add(r, scatter(l, keys_[k + 1], b_), b_);
    }
    return l * b_ + r;
  }

  static uint64_t add(uint64_t x, uint64_t y, uint64_t range) { return x + y < range ? x + y : x + y - range; }

  // A number below `range` (< 2^32) that depends on every bit of value and key (splitmix64's finaliser).
  static uint64_t scatter(uint64_t value, uint64_t key, uint64_t range) {
    uint64_t x = value + key;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    x ^= x >> 31;
    return ((x >> 32) * range) >> 32;
  }

  uint64_t n_, a_, b_;
  uint64_t keys_[kRounds];
};

}  // namespace

std::vector<int64_t> batch_samples(const EpochPlan& plan, int64_t step) {
  PAL_CHECK(plan.samples > 0, "samples to train on", plan.samples, "give a data set that is not empty");
  PAL_CHECK(plan.global_batch > 0, "global batch", plan.global_batch, "give at least 1");
  PAL_ASSERT(step >= 0, "a step counts from 0");
  const int64_t steps = plan.steps_per_epoch(), epoch = step / steps, within = step % steps;
  const int64_t smaller = plan.samples / steps, larger_ones = plan.samples % steps;
  const int64_t begin = within * smaller + std::min(within, larger_ones);
  const int64_t size = smaller + (within < larger_ones ? 1 : 0);
  const Permutation permutation(static_cast<uint64_t>(plan.samples), plan.seed, static_cast<uint64_t>(epoch));
  std::vector<int64_t> samples(size);
  for (int64_t i = 0; i < size; ++i) samples[i] = static_cast<int64_t>(permutation(static_cast<uint64_t>(begin + i)));
  return samples;
}

std::vector<int64_t> rank_slices(int64_t n, int ranks) {
  PAL_ASSERT(n >= 0 && ranks > 0, "a batch is divided among at least one rank");
  std::vector<int64_t> begin(ranks + 1);
  for (int64_t r = 0; r <= ranks; ++r) begin[r] = r * (n / ranks) + std::min<int64_t>(r, n % ranks);
  return begin;
}

}  // namespace pal
