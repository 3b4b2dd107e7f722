// epoch_sampler: the permutation of an epoch and its cut into batches.
#include "core/data/loader/epoch_sampler.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::data {
namespace {

// A permutation of [0, n): a Feistel cipher on the pairs (l, r) of an a × b table that just covers [0, n), walked until
// it lands inside (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). Round keys come from the stream.
class Permutation {
 public:
  Permutation(uint64_t n, Random random) : n_(n) {
    a_ = static_cast<uint64_t>(std::ceil(std::sqrt(static_cast<double>(n))));
    b_ = (n + a_ - 1) / a_;
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

  // A number below `range` (< 2^32) that depends on every bit of value and key (splitmix64's finalizer).
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

// The order of one epoch. Stream 0 of the epoch shuffles all samples, or the runs; stream 1 + w the window w.
class EpochOrder {
 public:
  EpochOrder(const EpochSpec& plan, int64_t epoch)
      : plan_(plan),
        epoch_(static_cast<uint64_t>(epoch)),
        runs_(plan.samples / EpochSpec::kRun),
        first_(static_cast<uint64_t>(plan.shuffle == Shuffle::windows ? std::max<int64_t>(runs_, 1) : plan.samples),
               stream(0)) {
    if (plan.shuffle == Shuffle::windows)
      start_ = static_cast<int64_t>(stream(kStart).below(static_cast<uint64_t>(plan.samples)));
  }

  // The samples at positions [begin, end) of the epoch.
  std::vector<int64_t> samples(int64_t begin, int64_t end) const {
    std::vector<int64_t> samples;
    samples.reserve(static_cast<size_t>(end - begin));
    if (plan_.shuffle != Shuffle::windows) {
      const bool shuffled = plan_.shuffle == Shuffle::full;
      for (int64_t i = begin; i < end; ++i)
        samples.push_back(shuffled ? static_cast<int64_t>(first_(static_cast<uint64_t>(i))) : i);
      return samples;
    }
    for (int64_t at = begin; at < end;) {
      const int64_t window = at / plan_.window, from = window * plan_.window,
                    to = std::min(from + plan_.window, plan_.samples);
      const Permutation inside(static_cast<uint64_t>(to - from), stream(1 + static_cast<uint64_t>(window)));
      for (; at < std::min(to, end); ++at)
        samples.push_back(on_disk(from + static_cast<int64_t>(inside(static_cast<uint64_t>(at - from)))));
    }
    return samples;
  }

  // The sample at position p of the shuffled runs. Samples outside of all runs (fewer than kRun, others each epoch)
  // come last.
  int64_t on_disk(int64_t p) const {
    const int64_t run = p / EpochSpec::kRun;
    const int64_t from = run < runs_ ? static_cast<int64_t>(first_(static_cast<uint64_t>(run))) : run;
    const int64_t at = start_ + from * EpochSpec::kRun + p % EpochSpec::kRun;
    return at < plan_.samples ? at : at - plan_.samples;
  }

 private:
  static constexpr uint64_t kStart = (uint64_t{1} << 47);
  Random stream(uint64_t which) const { return Random(plan_.seed, Purpose::shuffle, epoch_, which); }

  const EpochSpec& plan_;
  uint64_t epoch_;
  int64_t runs_, start_ = 0;
  Permutation first_;
};

struct Positions {
  int64_t epoch, begin, end;
};

Positions positions(const EpochSpec& plan, int64_t step) {
  const int64_t steps = plan.steps_per_epoch(), within = step % steps;
  const int64_t smaller = plan.samples / steps, larger_ones = plan.samples % steps;
  const int64_t begin = within * smaller + std::min(within, larger_ones);
  return {step / steps, begin, begin + smaller + (within < larger_ones ? 1 : 0)};
}

}  // namespace

std::vector<int64_t> batch_samples(const EpochSpec& plan, int64_t step) {
  PAL_CHECK(plan.samples > 0, "there are {} samples to train on", plan.samples, "give a data set that is not empty");
  PAL_CHECK(plan.global_batch > 0, "train.global_batch is {}", plan.global_batch, "give at least 1");
  PAL_ASSERT(step >= 0, "a step counts from 0");
  PAL_ASSERT(plan.window > 0 && plan.window % EpochSpec::kRun == 0, "a window holds whole runs");
  const Positions p = positions(plan, step);
  return EpochOrder(plan, p.epoch).samples(p.begin, p.end);
}

std::vector<int64_t> batch_samples(const EpochSpec& plan, const std::vector<int64_t>& subset, int64_t step) {
  std::vector<int64_t> samples = batch_samples(plan, step);
  if (!subset.empty()) {
    for (int64_t& sample : samples) sample = subset[sample];
  }
  return samples;
}

std::vector<SampleRange> read_ahead(const EpochSpec& plan, int64_t step) {
  std::vector<SampleRange> ranges;
  if (plan.shuffle != Shuffle::windows) return ranges;
  const Positions p = positions(plan, step);
  const EpochOrder order(plan, p.epoch);
  for (int64_t at = p.begin + plan.window; at < std::min(p.end + plan.window, plan.samples); ++at) {
    const int64_t sample = order.on_disk(at);
    if (ranges.empty() || ranges.back().end != sample) ranges.push_back({sample, sample});
    ++ranges.back().end;
  }
  return ranges;
}

}  // namespace pal::data
