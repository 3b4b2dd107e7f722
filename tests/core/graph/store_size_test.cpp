// store_size: the store at scale: as many samples as ImageNet, components with many negatives, and hubs.
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "core/graph/store.h"
#include "kernels/base/philox.h"

namespace pal::graph {
namespace {

TEST(LargeStore, ImageNetSizeIsQuick) {
  const int64_t n = 1281167;
  std::vector<int64_t> labels(n);
  for (int64_t i = 0; i < n; ++i) labels[i] = (i * 7919) % 1000;
  const auto start = std::chrono::steady_clock::now();
  GraphStore store(n);
  store.set_labels(labels);
  EXPECT_EQ(store.components(), 1000);
  EXPECT_EQ(store.relation(0, 1000), Relation::same);
  EXPECT_EQ(store.relation(0, 1), Relation::different);
  // Ten times the expected time: this test guards the complexity, the benchmark measures the speed.
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 20);
}

TEST(LargeStore, MergesOfComponentsWithManyNegatives) {
  // Star graphs of negatives whose centers are merged one after the other: moving the larger list would be quadratic.
  const int64_t stars = 300, leaves = 300;
  GraphStore store(stars * (leaves + 1));
  const auto center = [&](int64_t s) { return s * (leaves + 1); };
  for (int64_t s = 0; s < stars; ++s) {
    for (int64_t l = 1; l <= leaves; ++l) store.insert(center(s), center(s) + l, Relation::different);
    if (s > 0) store.insert(center(s - 1), center(s), Relation::same);
  }
  EXPECT_EQ(store.component_size(0), stars);
  EXPECT_EQ(store.relation(0, center(stars - 1) + leaves), Relation::different);
  EXPECT_EQ(store.relation(1, 2), Relation::unknown);
}

// Hubs that merge with each other and with small components, and hubs that a merge creates.
TEST(LargeStore, HubsThatDifferAreRecorded) {
  constexpr int64_t kMany = HubPairs::kNegatives, kTemplates = 70, kSamples = kTemplates + 2 * kMany;
  Random random(4, Purpose::bench);
  const auto of_class = [](int64_t s) { return s < kTemplates ? s / 2 : s % 40; };  // two templates per class
  GraphStore store(kSamples);
  int64_t hubs = 0, known = 0;
  const auto expect_bits = [&] {
    hubs = known = 0;
    for (int64_t a = 0; a < kTemplates; ++a) {
      ASSERT_EQ(store.hub(a) >= 0, store.negatives(a) >= kMany);
      if (store.hub(a) < 0) continue;
      ++hubs;
      HubPairs::Row row(2, 0);
      for (int64_t b = 0; b < kTemplates; ++b) {
        if (store.hub(b) < 0 || store.relation(a, b) != Relation::different) continue;
        HubPairs::set(row, store.hub(b));
        ++known;
      }
      HubPairs::Row row_of_hub = store.hubs().row(store.hub(a));
      row_of_hub.resize(2, 0);
      ASSERT_EQ(row_of_hub, row) << "template " << a;
    }
  };
  for (int round = 0; round < 6; ++round) {
    for (int64_t k = 0; k < 25000; ++k) {
      const auto t = static_cast<int64_t>(random.below(kTemplates)), s = static_cast<int64_t>(random.below(kSamples));
      const bool same = of_class(s) == of_class(t);
      if (!same || round % 2 == 1 || random.below(20) == 0)
        store.insert(t, s, same ? Relation::same : Relation::different);
    }
    expect_bits();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(hubs, 20);
  EXPECT_GT(known, 10 * hubs);
  EXPECT_GT(store.remove({{store.answer(0).i, store.answer(0).j}}), 0);
  expect_bits();
}

TEST(LargeStore, AHubTakesOverTheNegativesOfAMergedComponent) {
  constexpr int64_t kMany = HubPairs::kNegatives;
  GraphStore store(3 + 2 * kMany);
  for (int64_t s = 0; s < 2 * kMany; ++s) store.insert(s % 2, 3 + s, Relation::different);
  store.insert(2, 1, Relation::different);
  ASSERT_EQ(store.relation(0, 1), Relation::unknown);
  store.insert(0, 2, Relation::same);
  HubPairs::Row expected;
  HubPairs::set(expected, store.hub(1));
  EXPECT_EQ(store.hubs().row(store.hub(0)), expected);
}

}  // namespace
}  // namespace pal::graph
