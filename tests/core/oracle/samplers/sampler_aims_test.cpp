// sampler_aims: small pools in which one choice is right.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "core/config/config.h"
#include "core/oracle/round/choose_questions.h"
#include "core/oracle/samplers/samplers.h"
#include "tests/core/spec_of.h"

namespace pal::oracle {
namespace {

std::vector<Query> choose(const std::string& sampler, const graph::GraphStore& store, const Pool& pool,
                          int64_t questions) {
  return make_query_sampler(spec_of({"oracle.sampler=" + sampler}).oracle)
      ->choose(store, pool, {.seed = 1, .round = 0, .questions = questions});
}

// A pool of rows on the unit circle, sample k at angle degrees[k].
Pool on_circle(const std::vector<double>& degrees) {
  Pool pool{std::vector<int64_t>(degrees.size()), at::empty({static_cast<int64_t>(degrees.size()), 2}, at::kFloat)};
  std::iota(pool.samples.begin(), pool.samples.end(), int64_t{0});
  for (size_t k = 0; k < degrees.size(); ++k) {
    pool.embeddings.data_ptr<float>()[2 * k] = static_cast<float>(std::cos(degrees[k] * 3.14159265 / 180));
    pool.embeddings.data_ptr<float>()[2 * k + 1] = static_cast<float>(std::sin(degrees[k] * 3.14159265 / 180));
  }
  return pool;
}

// Ninety-three copies of one point and three others, all equally uncertain: k-means++ on their gradients takes one of
// each.
TEST(SamplerAims, GradientsChooseDifferentPoints) {
  const int64_t n = 100;
  graph::GraphStore store(n);
  std::vector<int64_t> labels(n, -1);
  for (int64_t c = 0; c < 4; ++c) labels[c] = c;
  store.set_labels(labels);
  Pool pool{std::vector<int64_t>(n), at::zeros({n, 4}, at::kFloat)};
  for (int64_t i = 0; i < n; ++i) {
    pool.samples[i] = i;
    const int64_t kind = i < 4   ? i
                         : i < 7 ? i - 4
                                 : 3;  // corners; three edges once each; the fourth edge for all others
    pool.embeddings[i][kind] = 1;
    if (i >= 4) pool.embeddings[i][(kind + 1) % 4] = 1;
  }
  std::set<int64_t> edges;
  for (const Query& q : choose("gradients", store, pool, 4)) {
    for (int64_t m : q.members) edges.insert(std::min<int64_t>(m, 7));
  }
  EXPECT_EQ(edges, (std::set<int64_t>{4, 5, 6, 7}));
}

// Known points cover their surroundings: the first question is about the point farthest from all known ones.
TEST(SamplerAims, KCenterBeginsFarFromKnownPoints) {
  graph::GraphStore store(7);
  store.set_labels({0, 1, -1, -1, -1, -1, -1});
  const std::vector<Query> queries = choose("k_center", store, on_circle({0, 100, 5, 95, 20, 52, 88}), 1);
  ASSERT_EQ(queries.size(), 1u);
  EXPECT_EQ(queries[0].members, std::vector<int64_t>{5});
}

// The position of a component is the mean of its members, not its first member.
TEST(SamplerAims, MergingUsesTheMeanOfAComponent) {
  graph::GraphStore store(5);
  store.insert(0, 1, graph::Relation::same);
  store.insert(1, 2, graph::Relation::same);
  const std::vector<Query> queries =
      choose("merging", store, on_circle({0, 60, 66, 20, 46}), 1);  // mean of the first three: 42
  ASSERT_EQ(queries.size(), 1u);
  const std::set<int64_t> pair = {queries[0].template_sample, queries[0].members.at(0)};
  EXPECT_EQ(pair, (std::set<int64_t>{0, 4})) << "by its first member it would be 3";
}

// The prediction for a member that is known itself comes from its nearest other known sample.
TEST(SamplerAims, APredictionUsesOtherSamples) {
  graph::GraphStore store(5);
  store.set_labels({0, 0, 1, 1, -1});
  std::vector<Query> queries = {{.kind = QueryKind::pair, .template_sample = 0, .members = {1, 4}}};
  predict_answers(store, on_circle({0, 50, 60, 70, 4}), queries);
  EXPECT_EQ(queries[0].expected, (std::vector<graph::Relation>{graph::Relation::different, graph::Relation::same}));
}

}  // namespace
}  // namespace pal::oracle
