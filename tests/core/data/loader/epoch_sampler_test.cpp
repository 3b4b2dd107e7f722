// epoch_sampler: every sample once per epoch, batches of nearly equal size, and an order without structure.
#include "core/data/loader/epoch_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "core/comm/rank_slices.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

// All batches of an epoch, one after the other.
std::vector<int64_t> epoch_order(const EpochSpec& plan, int64_t epoch) {
  std::vector<int64_t> order;
  for (int64_t s = 0; s < plan.steps_per_epoch(); ++s) {
    const auto batch = batch_samples(plan, epoch * plan.steps_per_epoch() + s);
    order.insert(order.end(), batch.begin(), batch.end());
  }
  return order;
}

double correlation(const std::vector<int64_t>& x, const std::vector<int64_t>& y) {
  const double n = static_cast<double>(x.size()), mean = (n - 1) / 2;  // both are permutations of 0 … n − 1
  double xy = 0, xx = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (static_cast<double>(x[i]) - mean) * (static_cast<double>(y[i]) - mean);
    xx += (static_cast<double>(x[i]) - mean) * (static_cast<double>(x[i]) - mean);
  }
  return xy / xx;
}

TEST(EpochSampler, EachSampleOncePerEpochInNearlyEqualBatches) {
  for (const int64_t n : {1, 2, 3, 5, 10, 97, 256, 1000, 65536, 65537}) {
    for (const int64_t batch : {1, 2, 7, 256, 100000}) {
      if (n / batch > 4000) continue;
      SCOPED_TRACE("N " + std::to_string(n) + " batch " + std::to_string(batch));
      const EpochSpec plan{n, batch, 9};
      for (int64_t epoch = 0; epoch < 2; ++epoch) {
        int64_t smallest = n, largest = 0;
        for (int64_t s = 0; s < plan.steps_per_epoch(); ++s) {
          const auto size = static_cast<int64_t>(batch_samples(plan, epoch * plan.steps_per_epoch() + s).size());
          smallest = std::min(smallest, size);
          largest = std::max(largest, size);
        }
        EXPECT_LE(largest - smallest, 1);
        EXPECT_LE(largest, batch);
        std::vector<int64_t> order = epoch_order(plan, epoch);
        std::sort(order.begin(), order.end());
        ASSERT_EQ(static_cast<int64_t>(order.size()), n);
        for (int64_t i = 0; i < n; ++i) ASSERT_EQ(order[i], i);
      }
    }
  }
}

TEST(EpochSampler, ImageNetSizeHasNoStructure) {
  const EpochSpec plan{1281167, 4096, 3};
  const std::vector<int64_t> first = epoch_order(plan, 0), second = epoch_order(plan, 1);
  std::vector<bool> seen(plan.samples);
  for (const int64_t s : first) {
    ASSERT_TRUE(s >= 0 && s < plan.samples && !seen[s]);
    seen[s] = true;
  }
  const double bound = 5 / std::sqrt(static_cast<double>(plan.samples));
  std::vector<int64_t> identity(first.size()), shifted(first);
  for (size_t i = 0; i < identity.size(); ++i) identity[i] = static_cast<int64_t>(i);
  EXPECT_LT(std::abs(correlation(first, identity)), bound);
  EXPECT_LT(std::abs(correlation(first, second)), bound);
  for (const int lag : {1, 2, 1000, 1132, 1133}) {  // 1132 is the side of the table inside
    std::rotate_copy(first.begin(), first.begin() + lag, first.end(), shifted.begin());
    EXPECT_LT(std::abs(correlation(first, shifted)), bound) << "lag " << lag;
  }
  // A batch draws from all parts of the data set: counts per tenth are hypergeometric.
  const auto batch = batch_samples(plan, 17);
  std::vector<double> counts(10);
  for (const int64_t s : batch) ++counts[10 * s / plan.samples];
  const double mean = static_cast<double>(batch.size()) / 10;
  for (const double count : counts) EXPECT_NEAR(count, mean, 5 * std::sqrt(mean * 0.9));
}

// Small sets: over many epochs every sample is as likely at every position, and every order of four occurs alike.
TEST(EpochSampler, SmallSetsAreShuffledFairly) {
  constexpr int kEpochs = 24000;
  for (const int64_t n : {2, 3, 7, 10}) {
    std::map<std::pair<int64_t, int64_t>, int> counts;
    for (int e = 0; e < kEpochs; ++e) {
      const auto order = batch_samples({n, n, 1}, e);
      for (int64_t p = 0; p < n; ++p) ++counts[{p, order[p]}];
    }
    const double mean = double(kEpochs) / static_cast<double>(n);
    EXPECT_EQ(static_cast<int64_t>(counts.size()), n * n);
    for (const auto& [cell, count] : counts)
      EXPECT_NEAR(count, mean, 5 * std::sqrt(mean)) << "N " << n << " position " << cell.first;
  }
  std::map<std::vector<int64_t>, int> orders;
  for (int e = 0; e < kEpochs; ++e) ++orders[batch_samples({4, 4, 1}, e)];
  EXPECT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, kEpochs / 24, kEpochs / 24 * 0.35);
}

TEST(EpochSampler, SeedAndEpochMatter) {
  const EpochSpec plan{1000, 1000, 1};
  EXPECT_EQ(batch_samples(plan, 0), batch_samples(plan, 0));
  EXPECT_NE(batch_samples(plan, 0), batch_samples(plan, 1));
  EXPECT_NE(batch_samples(plan, 0), batch_samples({1000, 1000, 2}, 0));
}

EpochSpec windowed(int64_t n, int64_t batch, int64_t window, uint64_t seed = 9) {
  return {n, batch, seed, Shuffle::windows, window};
}

TEST(EpochSampler, WindowsGiveEachSampleOncePerEpoch) {
  for (const int64_t n : {1, 2, 15, 16, 17, 100, 1000, 4096, 5003}) {
    for (const int64_t window : {16, 64, 1024, 1 << 20}) {
      SCOPED_TRACE("N " + std::to_string(n) + " window " + std::to_string(window));
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        std::vector<int64_t> order = epoch_order(windowed(n, 37, window), epoch);
        std::sort(order.begin(), order.end());
        ASSERT_EQ(static_cast<int64_t>(order.size()), n);
        for (int64_t i = 0; i < n; ++i) ASSERT_EQ(order[i], i);
      }
    }
  }
  EXPECT_NE(epoch_order(windowed(1000, 50, 64), 0), epoch_order(windowed(1000, 50, 64), 1));
  EXPECT_NE(epoch_order(windowed(1000, 50, 64), 0), epoch_order(windowed(1000, 50, 64, 8), 0));
}

// The samples that a batch takes from a window were announced to the disk one window earlier, in long pieces.
TEST(EpochSampler, WindowsAreReadOneWindowAhead) {
  const EpochSpec plan = windowed(10000, 100, 1600);
  std::vector<bool> asked(plan.samples);
  int64_t pieces = 0, samples = 0;
  for (int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    if (step >= 16) {  // the first window is not announced
      for (const int64_t s : batch_samples(plan, step)) ASSERT_TRUE(asked[s]) << "step " << step;
    }
    for (const SampleRange& r : read_ahead(plan, step)) {
      for (int64_t s = r.begin; s < r.end; ++s) asked[s] = true;
      ++pieces;
      samples += r.end - r.begin;
    }
  }
  EXPECT_EQ(samples, 10000 - 1600);
  EXPECT_LE(pieces, samples / EpochSpec::kRun * 3 / 2);  // a run may be cut by the end of a batch
  EXPECT_TRUE(read_ahead({10000, 100, 9}, 3).empty());
}

TEST(EpochSampler, WithoutShuffleTheOrderIsThePlans) {
  const EpochSpec plan{103, 20, 4, Shuffle::none};
  const std::vector<int64_t> order = epoch_order(plan, 0);
  ASSERT_EQ(order.size(), 103u);
  for (int64_t i = 0; i < 103; ++i) EXPECT_EQ(order[i], i);
  EXPECT_TRUE(read_ahead(plan, 0).empty());
}

// Each sample once per epoch, also when the run is stopped in the middle of it and resumed on other ranks.
TEST(EpochSampler, ResumedWithOtherRanksInTheMiddleOfAnEpoch) {
  for (const Shuffle shuffle : {Shuffle::full, Shuffle::windows}) {
    const EpochSpec plan{1003, 100, 4, shuffle, 64};
    std::vector<int> seen(plan.samples);
    for (int64_t step = plan.steps_per_epoch(); step < 2 * plan.steps_per_epoch(); ++step) {
      const int ranks = step < plan.steps_per_epoch() + 4 ? 3 : step < plan.steps_per_epoch() + 7 ? 8 : 1;
      for (int rank = 0; rank < ranks; ++rank) {  // each rank computes the batch by itself
        const std::vector<int64_t> batch = batch_samples(plan, step);
        const auto begin = comm::rank_slices(static_cast<int64_t>(batch.size()), ranks);
        for (int64_t i = begin[rank]; i < begin[rank + 1]; ++i) ++seen[batch[i]];
      }
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), plan.samples);
  }
}

// Classes in a batch of 256 when the files lie class by class, as they do in ImageNet.
double classes_per_batch(const EpochSpec& plan, int64_t per_class) {
  double sum = 0;
  for (int64_t step = 0; step < 200; ++step) {
    std::map<int64_t, int> classes;
    for (const int64_t s : batch_samples(plan, step * 25)) ++classes[s / per_class];
    sum += static_cast<double>(classes.size());
  }
  return sum / 200;
}

TEST(EpochSampler, WindowsMixClassesNearlyAsWellAsAFullShuffle) {
  const int64_t n = 1281167, per_class = 1282;
  const double full = classes_per_batch({n, 256, 5}, per_class);
  const double windows = classes_per_batch(windowed(n, 256, 16384), per_class);
  const double wide = classes_per_batch(windowed(n, 256, 131072), per_class);
  RecordProperty("full", std::to_string(full));
  RecordProperty("windows_16384", std::to_string(windows));
  RecordProperty("windows_131072", std::to_string(wide));
  EXPECT_NEAR(full, 1000 * (1 - std::pow(1 - 1.0 / 1000, 256)), 2);
  EXPECT_GT(windows, 0.9 * full);
  EXPECT_GT(wide, 0.98 * full);
}

TEST(EpochSampler, RefusesEmptyPlans) {
  EXPECT_THROW(batch_samples({0, 4, 1}, 0), Error);
  EXPECT_THROW(batch_samples({4, 0, 1}, 0), Error);
}

}  // namespace
}  // namespace pal::data
