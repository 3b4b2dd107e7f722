// build: every kind of batch graph against its definition, pair by pair.
#include "core/graph/build.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/graph/signed_parts.h"
#include "kernels/base/philox.h"
#include "tests/support.h"

namespace pal::graph {
namespace {

using Definition = std::function<double(int64_t a, int64_t b)>;  // of the samples at two positions

void expect_definition(const BatchGraph& graph, const std::vector<int64_t>& batch, const Definition& weight) {
  check(graph);
  const std::vector<double> g = dense(graph, SelfLoops::on);
  const int64_t n = graph.samples, rows = n * graph.views;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < rows; ++j) {
      ASSERT_NEAR(g[i * rows + j], weight(batch[i % n], batch[j % n]), 1e-14)
          << "samples " << batch[i % n] << " " << batch[j % n];
    }
  }
}

// Labels on some samples, answers on others, all consistent with the class sample mod 4.
GraphStore random_store(Random& random, int64_t n, Deduction deduction) {
  GraphStore store(n, deduction);
  std::vector<int64_t> labels(n);
  for (int64_t s = 0; s < n; ++s) labels[s] = random.below(3) == 0 ? s % 4 : -1;
  store.set_labels(labels);
  for (int64_t k = 0; k < n; ++k) {
    const auto i = static_cast<int64_t>(random.below(n)), j = static_cast<int64_t>(random.below(n));
    store.insert(i, j, i % 4 == j % 4 ? Relation::same : Relation::different);
  }
  return store;
}

TEST(BuildGraph, KindsOfRelationsEqualTheStore) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed, Purpose::bench);
    const int64_t n = 24;
    const Deduction deduction = seed % 2 == 0 ? Deduction::on : Deduction::off;
    const GraphStore store = random_store(random, n, deduction);
    std::vector<int64_t> batch;
    for (int k = 0; k < 14; ++k) batch.push_back(static_cast<int64_t>(random.below(n)));  // some twice
    const auto relation = [&](int64_t a, int64_t b) { return static_cast<double>(store.relation(a, b)); };
    GraphSpec spec;
    spec.kind = GraphKind::signs;
    expect_definition(build_batch_graph(store, spec, batch, 2), batch, relation);
    spec.kind = GraphKind::supervised;
    expect_definition(build_batch_graph(store, spec, batch, 2), batch,
                      [&](int64_t a, int64_t b) { return std::max(relation(a, b), 0.0); });
    spec.kind = GraphKind::mixed;
    spec.alpha = 0.3;
    expect_definition(build_batch_graph(store, spec, batch, 2), batch, [&](int64_t a, int64_t b) {
      const double both = store.known(a) && store.known(b) ? std::max(relation(a, b), 0.0) : 0;
      return 0.7 * (a == b) + 0.3 * both;
    });
    spec.kind = GraphKind::table;
    expect_definition(build_batch_graph(store, spec, batch, 2), batch, [&](int64_t a, int64_t b) {
      return store.label(a) < 0 || store.label(b) < 0 ? 0.0 : -static_cast<double>(store.label(a) != store.label(b));
    });
    if (HasFailure()) return;
  }
}

// Both forms of the answers "different": pairs while they are few, a table of components when that is smaller.
TEST(BuildGraph, SignedAnswersBetweenLargeComponents) {
  GraphStore store(60);
  for (int64_t s = 3; s < 60; ++s) store.insert(s % 3, s, Relation::same);
  store.insert(4, 5, Relation::different);
  std::vector<int64_t> batch;
  for (int64_t s = 0; s < 60; ++s) batch.push_back(s);
  GraphSpec spec;
  spec.kind = GraphKind::signs;
  const auto relation = [&](int64_t a, int64_t b) { return static_cast<double>(store.relation(a, b)); };
  const BatchGraph large = build_batch_graph(store, spec, batch, 2);
  EXPECT_TRUE(large.rest.offsets.empty());
  expect_definition(large, batch, relation);
  batch = {4, 5, 0};
  const BatchGraph small = build_batch_graph(store, spec, batch, 2);
  EXPECT_EQ(small.rest.columns.size(), 2u);
  expect_definition(small, batch, relation);
}

TEST(BuildGraph, ComponentsWithMoreAnswersThanTheBatchIsLarge) {
  const int64_t n = 400;
  GraphStore store(n);
  for (int64_t s = 4; s < n; ++s) {
    store.insert(s % 2, s, Relation::different);
    if (s % 3 == 0) store.insert(2, s, Relation::different);
  }
  store.insert(0, 1, Relation::different);
  store.insert(6, 8, Relation::same);  // the lists of other components now hold this component twice
  const std::vector<int64_t> batch = {0, 1, 2, 3, 6, 8, 9, 11, 50};
  GraphSpec spec;
  spec.kind = GraphKind::signs;
  expect_definition(build_batch_graph(store, spec, batch, 1), batch,
                    [&](int64_t a, int64_t b) { return static_cast<double>(store.relation(a, b)); });
}

// Templates compared with most samples, most of them known to differ. Pairs outside the dense hubs keep their form.
TEST(BuildGraph, HubsThatAllDifferAreTwoLayers) {
  for (const bool labeled : {false, true}) {
    const int64_t templates = 8, n = templates + 2 * HubPairs::kNegatives;
    GraphStore store(n);
    if (labeled) {
      std::vector<int64_t> labels(n, -1);
      labels[2] = 5;
      labels[6] = labels[102] = 7;
      store.set_labels(labels);
    }
    for (int64_t s = templates; s < n; ++s) {
      for (int64_t t = 0; t < templates; ++t) {
        if (s % templates != t) {
          if (s % 2 == 0 || t < 3) store.insert(t, s, Relation::different);
        } else if (s % 3 == 0 && store.relation(t, s) == Relation::unknown) {
          store.insert(t, s, Relation::same);
        }
      }
    }
    for (int64_t t = 0; t < templates; ++t) EXPECT_EQ(store.hub(t) >= 0, store.negatives(t) >= HubPairs::kNegatives);
    std::vector<int64_t> batch;
    for (int64_t s = 0; s < 150; ++s) batch.push_back((s * 7) % 210);
    GraphSpec spec;
    spec.kind = GraphKind::signs;
    const BatchGraph graph = build_batch_graph(store, spec, batch, 1);
    expect_definition(graph, batch, [&](int64_t a, int64_t b) { return static_cast<double>(store.relation(a, b)); });
    const auto plain = [](const BlockLayer& layer) { return !layer.has_table() && layer.weight == -1; };
    EXPECT_EQ(std::count_if(graph.layers.begin(), graph.layers.end(), plain), labeled ? 2 : 1);
  }
}

// Hubs with a few pairs not known to differ: the layers of dense hubs stay, and the rest cancels those pairs only.
TEST(BuildGraph, UnknownPairsOfDenseHubsAreCancelled) {
  const int64_t hubs = 10, n = hubs + HubPairs::kNegatives;
  GraphStore store(n);
  for (int64_t a = 0; a < hubs; ++a) {
    for (int64_t s = hubs; s < n; ++s) store.insert(a, s, Relation::different);
    for (int64_t b = 0; b < a; ++b) {
      const bool open = (a == 1 && b == 0) || (a == 7 && b == 2) || (a == 9 && b != 8);  // 9 is not dense
      if (!open) store.insert(a, b, Relation::different);
    }
  }
  std::vector<int64_t> batch = {3, 1, 9, 0, 2, 7, 4, 5, 6, 8, 0};
  GraphSpec spec;
  spec.kind = GraphKind::signs;
  const BatchGraph graph = build_batch_graph(store, spec, batch, 1);
  expect_definition(graph, batch, [&](int64_t a, int64_t b) { return static_cast<double>(store.relation(a, b)); });
  EXPECT_EQ(graph.rest.columns.size(), 2 * (2 + 1 + 1));  // 0 twice with 1, 2 with 7; 9 with 8
  EXPECT_EQ(std::count_if(graph.layers.begin(), graph.layers.end(),
                          [](const BlockLayer& layer) { return layer.has_table(); }),
            0);
}

TEST(BuildGraph, TableOfLosses) {
  GraphStore store(7);
  store.set_labels({2, 0, 1, -1, 2, 0, 1});
  auto table = std::make_shared<LossTable>(LossTable{3, {0, 1, 4, 1, 0.5, 2, 4, 2, 0}});
  GraphSpec spec;
  spec.kind = GraphKind::table;
  spec.table = table;
  const std::vector<int64_t> batch = {4, 0, 3, 6, 1};
  expect_definition(build_batch_graph(store, spec, batch, 2), batch, [&](int64_t a, int64_t b) {
    return store.label(a) < 0 || store.label(b) < 0 ? 0 : -table->loss[store.label(a) * 3 + store.label(b)];
  });
  EXPECT_EQ(edge_mass(build_batch_graph(store, spec, {3}, 2)), 0);
  table->classes = 2;
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { build_batch_graph(store, spec, batch, 2); }), "2 classes"));
}

TEST(BuildGraph, TargetsAndTheirOrder) {
  const int64_t n = 9;
  const int32_t width = 4;
  Random random(3, Purpose::bench);
  auto targets = std::make_shared<Targets>();
  targets->width = width;
  for (int64_t k = 0; k < n * width; ++k)
    targets->values.push_back(static_cast<double>(random.below(5)) - 2);  // with ties
  const auto y = [&](int64_t s, int64_t k) { return targets->values[s * width + k]; };
  const GraphStore store(n);
  const std::vector<int64_t> batch = {8, 1, 3, 3, 0, 5};
  GraphSpec spec;
  spec.targets = targets;
  spec.kind = GraphKind::regression;
  expect_definition(build_batch_graph(store, spec, batch, 2), batch, [&](int64_t a, int64_t b) {
    double dot = 0;
    for (int k = 0; k < width; ++k) dot += y(a, k) * y(b, k);
    return dot;
  });
  spec.kind = GraphKind::ranking;
  const BatchGraph ranking = build_batch_graph(store, spec, batch, 2);
  expect_definition(ranking, batch, [&](int64_t a, int64_t b) {
    double disagree = 0;
    for (int k = 0; k < width; ++k) {
      for (int l = 0; l < k; ++l) {
        const double one = y(a, k) - y(a, l), two = y(b, k) - y(b, l);
        disagree += one * two < 0 ? 1 : (one == 0) != (two == 0) ? 0.5 : 0;
      }
    }
    return -disagree / 6;
  });
  for (double d : diagonal(ranking)) EXPECT_NEAR(d, 0, 1e-15);
}

TEST(BuildGraph, WeightedPairsAreAddedToAnyKind) {
  GraphStore store(6);
  store.set_labels({0, 0, 1, 1, -1, -1});
  store.set_edges(WeightedEdges(6, {{0, 2, 0.5}, {4, 1, -2}, {5, 5, 3}, {2, 0, 0.5}}, "test"));
  const std::vector<int64_t> batch = {2, 0, 5, 1, 0, 4};
  GraphSpec spec;
  spec.kind = GraphKind::pairs;
  expect_definition(build_batch_graph(store, spec, batch, 2), batch,
                    [&](int64_t a, int64_t b) { return (a == b) + store.edges().weight(a, b); });
  spec.kind = GraphKind::supervised;
  expect_definition(build_batch_graph(store, spec, batch, 2), batch, [&](int64_t a, int64_t b) {
    return (store.relation(a, b) == Relation::same) + store.edges().weight(a, b);
  });
}

TEST(BuildGraph, MissingEntriesAreAFunctionOfThePair) {
  const int64_t n = 200;
  GraphStore store(n);
  std::vector<int64_t> labels(n), batch(n);
  for (int64_t s = 0; s < n; ++s) {
    labels[s] = s % 2;
    batch[s] = (s * 77) % n;
  }
  store.set_labels(labels);
  GraphSpec spec;
  spec.kind = GraphKind::supervised;
  spec.missing = 0.7;
  spec.seed = 5;
  const BatchGraph graph = build_batch_graph(store, spec, batch, 1);
  check(graph);
  std::vector<double> of_sample(n * n);
  const std::vector<double> g = dense(graph, SelfLoops::on);
  double kept = 0;
  for (int64_t p = 0; p < n; ++p) {
    for (int64_t q = 0; q < n; ++q) {
      of_sample[batch[p] * n + batch[q]] = g[p * n + q];
      const double related = labels[batch[p]] == labels[batch[q]];
      ASSERT_LE(g[p * n + q], related);
      ASSERT_GE(g[p * n + q], p == q) << "a sample stays related to itself";
      kept += p != q ? g[p * n + q] : 0;
    }
  }
  const double pairs = n * (n / 2.0 - 1);
  EXPECT_NEAR(kept / pairs, 0.3, 5 * std::sqrt(0.21 * 2 / pairs));
  const std::vector<int64_t> other = {9, 4, 120, 7, 8};
  const std::vector<double> again = dense(build_batch_graph(store, spec, other, 1), SelfLoops::on);
  for (size_t p = 0; p < other.size(); ++p) {
    for (size_t q = 0; q < other.size(); ++q) EXPECT_EQ(again[p * 5 + q], of_sample[other[p] * n + other[q]]);
  }
  spec.missing = 1;
  EXPECT_EQ(edge_mass(build_batch_graph(store, spec, batch, 1)), 0);
}

TEST(WeightedEdges, RefusesInvalidInput) {
  const auto message = [](const std::vector<WeightedPair>& pairs) {
    return error_of(Exit::data, [&] { WeightedEdges(4, pairs, "file.csv"); });
  };
  EXPECT_TRUE(contains(message({{0, 4, 1}}), "file.csv: pair outside the data set: (0, 4)"));
  EXPECT_TRUE(contains(message({{-1, 2, 1}}), "outside"));
  EXPECT_TRUE(contains(message({{0, 1, std::nan("")}}), "not finite"));
  EXPECT_TRUE(contains(message({{0, 1, 1}, {2, 3, 1}, {0, 1, 2}}), "a pair has two weights"));
  EXPECT_TRUE(contains(message({{1, 0, 1}, {2, 3, 1}, {0, 1, 2}}), "different weights"));
  EXPECT_EQ(message({{1, 0, 1}, {0, 1, 1}, {1, 0, 1}, {2, 2, 5}}), "");
}

TEST(WeightedEdges, AreSymmetricAndSorted) {
  Random random(11, Purpose::bench);
  const int64_t n = 30;
  std::vector<double> w(n * n, 0);
  std::vector<WeightedPair> pairs;
  for (int k = 0; k < 150; ++k) {
    const auto i = static_cast<int64_t>(random.below(n)), j = static_cast<int64_t>(random.below(n));
    if (w[i * n + j] == 0) w[i * n + j] = w[j * n + i] = random.normal();
    pairs.push_back({i, j, w[i * n + j]});
  }
  const WeightedEdges edges(n, pairs, "test");
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_TRUE(
        std::is_sorted(edges.columns().begin() + edges.offsets()[i], edges.columns().begin() + edges.offsets()[i + 1]));
    for (int64_t j = 0; j < n; ++j) EXPECT_EQ(edges.weight(i, j), w[i * n + j]);
  }
}

}  // namespace
}  // namespace pal::graph
