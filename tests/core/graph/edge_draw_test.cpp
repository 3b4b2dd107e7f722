// edge_draw: partners are drawn together, all samples with a partner are equally likely, none is drawn twice.
#include "core/graph/edge_draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "core/data/loader/epoch_sampler.h"

namespace pal::graph {
namespace {

std::vector<int64_t> up_to(int64_t n) {
  std::vector<int64_t> v(n);
  std::iota(v.begin(), v.end(), 0);
  return v;
}

// Components of 2, 3 and 7 samples, and a "different" answer that joins nothing.
GraphStore small_store() {
  GraphStore store(40);
  store.insert(3, 30, Relation::same);
  store.insert(5, 6, Relation::same);
  store.insert(6, 20, Relation::same);
  for (int64_t i = 11; i < 17; ++i) store.insert(10, i, Relation::same);
  store.insert(3, 39, Relation::different);
  return store;
}

// In steps 0 to `steps` a draw of two gives a pair that is `related`.
void expect_pairs(const EdgeDraw& draw, int64_t steps, const std::function<bool(int64_t i, int64_t j)>& related) {
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<int64_t> pair;
    draw.add_to(pair, 2, 7, step);
    ASSERT_EQ(pair.size(), 2u);
    ASSERT_NE(pair[0], pair[1]);
    ASSERT_TRUE(related(pair[0], pair[1])) << pair[0] << " " << pair[1] << " at step " << step;
  }
}

// Each of 40 samples is in the batch as often as inclusion() predicts, for an even and an odd number of draws.
void expect_frequency(const EdgeDraw& draw) {
  constexpr int kSteps = 40000;
  for (const int64_t count : {4, 5}) {
    std::vector<int> in(40);
    for (int64_t step = 0; step < kSteps; ++step) {
      std::vector<int64_t> batch = data::batch_samples({40, 8, 3}, step);  // an epoch of 40 in batches of 8
      draw.add_to(batch, count, 3, step);
      for (const int64_t s : batch) ++in[s];
    }
    for (int64_t s = 0; s < 40; ++s) {
      const double want = draw.inclusion(s, count, 8.0 / 40);
      EXPECT_NEAR(in[s] / double(kSteps), want, 5 * std::sqrt(want * (1 - want) / kSteps))
          << "sample " << s << " count " << count;
    }
  }
}

TEST(EdgeDraw, PartnersAreDrawnTogether) {
  const GraphStore store = small_store();
  const EdgeDraw draw(store, up_to(40));
  EXPECT_EQ(draw.members(), 12);
  expect_pairs(draw, 500, [&](int64_t i, int64_t j) { return store.relation(i, j) == Relation::same; });
}

// Partners in a batch drawn at random, counted in epochs of small batches.
TEST(EdgeDraw, MeetingsByChance) {
  const GraphStore store = small_store();
  const EdgeDraw draw(store, up_to(40));
  for (const int64_t batch : {4, 8, 20}) {
    double met = 0, rows = 0;
    for (int64_t step = 0; step < 20000; ++step) {
      const std::vector<int64_t> samples = data::batch_samples({40, batch, 3}, step);
      for (int64_t s : samples) {
        met += std::any_of(samples.begin(), samples.end(),
                           [&](int64_t o) { return o != s && store.relation(s, o) == Relation::same; });
      }
      rows += static_cast<double>(samples.size());
    }
    EXPECT_NEAR(draw.meets_by_chance(batch), met / rows, 0.02) << "batch " << batch;
  }
  EXPECT_NEAR(draw.meets_by_chance(40), 12.0 / 40, 1e-12);
  EXPECT_EQ(EdgeDraw(GraphStore(40), up_to(40)).meets_by_chance(8), 0);
}

TEST(EdgeDraw, SamplesWithAPartnerAreEquallyLikely) {
  const EdgeDraw draw(small_store(), up_to(40));
  std::map<int64_t, int64_t> seen;
  const int64_t draws = 60000;
  for (int64_t step = 0; step < draws; ++step) {
    std::vector<int64_t> pair;
    draw.add_to(pair, 2, 7, step);
    for (int64_t s : pair) ++seen[s];
  }
  ASSERT_EQ(seen.size(), 12u);
  for (const auto& [sample, count] : seen)
    EXPECT_NEAR(static_cast<double>(count), 2.0 * draws / 12, 450) << "sample " << sample;  // 4.9 σ
}

TEST(EdgeDraw, AddsNoSampleTwice) {
  const EdgeDraw draw(small_store(), up_to(40));
  for (const int64_t count : {1, 2, 5, 64}) {
    for (int64_t step = 0; step < 50; ++step) {
      const std::vector<int64_t> before = {30, 1, 12, 39, 5};
      std::vector<int64_t> batch = before, again = before;
      draw.add_to(batch, count, 7, step);
      draw.add_to(again, count, 7, step);
      ASSERT_EQ(batch, again);
      ASSERT_LE(static_cast<int64_t>(batch.size() - before.size()), count);
      ASSERT_TRUE(std::equal(before.begin(), before.end(), batch.begin()));
      ASSERT_EQ(std::set<int64_t>(batch.begin(), batch.end()).size(), batch.size());
    }
  }
}

TEST(EdgeDraw, OnlySamplesTrainedOn) {
  // One of {3, 30} and one of {5, 6, 20} is not trained on: 3 has no partner left, 5 and 6 still form a pair.
  const std::vector<int64_t> trained = {3, 5, 20, 38};
  const EdgeDraw draw(small_store(), trained);
  EXPECT_EQ(draw.members(), 2);
  std::vector<int64_t> batch;
  draw.add_to(batch, 10, 1, 0);
  std::sort(batch.begin(), batch.end());
  EXPECT_EQ(batch, (std::vector<int64_t>{5, 20}));
}

TEST(EdgeDraw, EndsOfWeightedPairsAreDrawnTogether) {
  GraphStore store(20);
  store.set_edges(WeightedEdges(20, {{2, 3, 1}, {3, 9, -1}, {4, 4, 1}, {5, 19, 2}}, "test"));
  const EdgeDraw draw(store, {2, 3, 4, 5, 9});
  EXPECT_EQ(draw.members(), 3) << "4 is its own partner, 5's is not trained on";
  expect_pairs(draw, 200, [&](int64_t i, int64_t j) { return store.edges().weight(i, j) != 0; });
}

TEST(EdgeDraw, WithoutDeductionOnlyAnsweredPairs) {
  GraphStore store(9, Deduction::off);
  store.set_labels({0, 0, -1, -1, -1, -1, -1, -1, -1});
  for (int64_t s = 2; s < 6; ++s) store.insert(s, s + 1, Relation::same);
  store.insert(7, 8, Relation::different);
  const EdgeDraw draw(store, up_to(9));
  EXPECT_EQ(draw.members(), 7);
  expect_pairs(draw, 300, [&](int64_t i, int64_t j) { return store.relation(i, j) == Relation::same; });
}

// Groups of the centers 3 (with 4 to 7) and 9 (with 10, 11 and 7): 7 lies in both, so its draws count twice.
TEST(EdgeDraw, WithOneStepOfDeductionMembersOfAGroup) {
  GraphStore store(40, Deduction::once);
  for (int64_t s = 4; s < 8; ++s) store.insert(3, s, Relation::same);
  for (int64_t s : {10, 11, 7}) store.insert(9, s, Relation::same);
  const EdgeDraw draw(store, up_to(40));
  EXPECT_EQ(draw.members(), 9);
  const std::set<int64_t> one = {3, 4, 5, 6, 7}, other = {9, 10, 11, 7};
  std::set<std::pair<int64_t, int64_t>> seen;
  expect_pairs(draw, 500, [&](int64_t i, int64_t j) {
    seen.insert(std::minmax(i, j));
    return (one.count(i) && one.count(j)) || (other.count(i) && other.count(j));
  });
  EXPECT_TRUE(seen.count({4, 5})) << "not answered, but like one and the same";
  EXPECT_EQ(seen.size(), 10u + 6u);
  expect_frequency(draw);
}

TEST(EdgeDraw, AddsNothingWithoutRelations) {
  std::vector<int64_t> batch = {1};
  EdgeDraw(GraphStore(5), up_to(5)).add_to(batch, 4, 1, 0);
  EXPECT_EQ(batch, std::vector<int64_t>{1});
}

// inclusion() equals the observed frequencies, for components of any size, an even and an odd number of draws.
TEST(EdgeDraw, InclusionIsTheFrequency) {
  GraphStore store(40);
  store.insert(0, 1, Relation::same);
  for (int64_t i = 11; i < 17; ++i) store.insert(10, i, Relation::same);
  const EdgeDraw draw(store, up_to(40));
  expect_frequency(draw);
  for (const int64_t count : {4, 5}) {
    EXPECT_DOUBLE_EQ(draw.inclusion(30, count, 0.2), 0.2);
    EXPECT_GT(draw.inclusion(0, count, 0.2), 0.5);
  }
}

}  // namespace
}  // namespace pal::graph
