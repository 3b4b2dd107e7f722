// batch_graph: every sum over pairs, the positive part and the negative pairs against the dense matrix.
#include "core/graph/batch_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "core/graph/signed_parts.h"
#include "core/graph/store.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"
#include "tests/core/graph/random_rest.h"

namespace pal::graph {
namespace {

double part_of(double w, Weights part) {
  return part == Weights::all ? w : part == Weights::positive ? std::max(w, 0.0) : std::abs(w);
}

void expect_sums_equal_dense(const BatchGraph& graph) {
  check(graph);
  const int64_t n = graph.samples, rows = n * graph.views;
  const std::vector<double> full = dense(graph, SelfLoops::on), d = diagonal(graph);
  bool negative = false;
  for (double w : full) negative = negative || w < 0;
  EXPECT_EQ(has_negative_weight(graph), negative);
  for (int64_t i = 0; i < rows; ++i) EXPECT_NEAR(full[i * rows + i], d[i % n], 1e-14 * (1 + std::abs(d[i % n])));
  for (SelfLoops loops : {SelfLoops::off, SelfLoops::on}) {
    const std::vector<double> g = dense(graph, loops);
    double square = 0, mass = 0;
    for (double w : g) {
      square += w * w;
      mass += std::abs(w);
    }
    EXPECT_NEAR(squared_norm(graph, loops), square, 1e-12 * (1 + square));
    if (loops == SelfLoops::off) {
      EXPECT_NEAR(edge_mass(graph), mass, 1e-12 * (1 + mass));
    }
    for (Weights part : {Weights::all, Weights::positive, Weights::absolute}) {
      const std::vector<double> sums = degrees(graph, loops, part);
      ASSERT_EQ(static_cast<int64_t>(sums.size()), n);
      for (int64_t i = 0; i < rows; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < rows; ++j) sum += part_of(g[i * rows + j], part);
        ASSERT_NEAR(sums[i % n], sum, 1e-12 * (1 + mass)) << "row " << i << " part " << static_cast<int>(part);
      }
    }
  }
}

void expect_parts_equal_dense(const BatchGraph& graph) {
  const std::vector<double> g = dense(graph, SelfLoops::on);
  const BatchGraph part = positive_part(graph);
  check(part);
  EXPECT_EQ(part.version, graph.version);
  const std::vector<double> positive = dense(part, SelfLoops::on);
  ASSERT_EQ(positive.size(), g.size());
  for (size_t k = 0; k < g.size(); ++k) ASSERT_NEAR(positive[k], std::max(g[k], 0.0), 1e-13) << k;
  BatchGraph negative;
  negative.samples = graph.samples;
  negative.views = graph.views;
  negative.rest = negative_pairs(graph, {graph.samples, 0, 0});
  check(negative);
  const std::vector<double> pairs = dense(negative, SelfLoops::on);
  for (size_t k = 0; k < g.size(); ++k) ASSERT_NEAR(pairs[k], std::min(g[k], 0.0), 1e-13) << k;
}

BlockLayer random_layer(Random& random, int64_t n, int32_t blocks, double weight) {
  BlockLayer layer{{}, blocks, weight, {}};
  for (int64_t p = 0; p < n; ++p) layer.block.push_back(static_cast<int32_t>(random.below(blocks + 1)) - 1);
  return layer;
}
void add_random_table(Random& random, BlockLayer& layer) {
  layer.table.assign(static_cast<size_t>(layer.blocks) * layer.blocks, 0);
  for (int32_t a = 0; a < layer.blocks; ++a) {
    for (int32_t b = 0; b <= a; ++b) {
      const double w = random.below(4) == 0 ? 0 : random.normal();
      layer.table[a * layer.blocks + b] = layer.table[b * layer.blocks + a] = w;
    }
  }
}

TEST(BatchGraph, AnyMixtureEqualsItsDenseForm) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed, Purpose::bench);
    const auto n = static_cast<int64_t>(1 + random.below(11));
    BatchGraph graph;
    graph.samples = n;
    graph.views = 1 + static_cast<int32_t>(random.below(3));
    graph.version = seed;
    for (uint64_t plain = random.below(4); plain > 0; --plain) {
      graph.layers.push_back(random_layer(random, n, static_cast<int32_t>(1 + random.below(n)), random.normal()));
    }
    for (uint64_t tables = random.below(3); tables > 0; --tables) {
      BlockLayer layer = random_layer(random, n, static_cast<int32_t>(1 + random.below(4)), random.normal());
      add_random_table(random, layer);
      graph.layers.insert(graph.layers.begin(), layer);
    }
    for (uint64_t features = random.below(5) / 2; features > 0; --features) {  // none, one or two
      FeatureLayer layer{{}, static_cast<int32_t>(1 + random.below(3)), random.normal()};
      for (int64_t k = 0; k < n * layer.width; ++k) layer.features.push_back(random.normal());
      graph.features.push_back(layer);
    }
    if (random.below(3) > 0) graph.rest = random_rest(n, static_cast<int>(random.below(2 * n)), Signs::any, seed);
    expect_sums_equal_dense(graph);
    expect_parts_equal_dense(graph);
    if (HasFailure()) return;
  }
}

TEST(BatchGraph, KindsEqualTheirDefinition) {
  GraphStore store(10);
  store.set_labels({0, 1, -1, 0, -1, 1, 0, -1, 2, -1});
  store.insert(2, 4, Relation::same);
  const std::vector<int64_t> batch = {3, 7, 4, 0, 2, 5, 9, 8, 3};  // 3 occurs twice, 8 is alone in its class
  for (int32_t views : {1, 2, 3}) {
    for (GraphKind kind : {GraphKind::ssl, GraphKind::supervised, GraphKind::mixed}) {
      const double alpha = 0.3;
      const BatchGraph graph = build_batch_graph(store, kind, alpha, batch, views);
      EXPECT_EQ(graph.version, store.version());
      const std::vector<double> g = dense(graph, SelfLoops::on);
      const int64_t n = graph.samples, rows = n * views;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < rows; ++j) {
          const int64_t a = batch[i % n], b = batch[j % n];
          const double own = a == b, same = store.relation(a, b) == Relation::same;
          const double both = store.known(a) && store.known(b) ? same : 0;
          const double expected = kind == GraphKind::ssl          ? own
                                  : kind == GraphKind::supervised ? same
                                                                  : (1 - alpha) * own + alpha * both;
          ASSERT_DOUBLE_EQ(g[i * rows + j], expected) << i << " " << j << " " << views;
        }
      }
      expect_sums_equal_dense(graph);
    }
  }
}

TEST(BatchGraph, EdgesOfMixedGraphAtItsEnds) {
  GraphStore store(4);
  store.set_labels({0, 0, 1, -1});
  const std::vector<int64_t> batch = {0, 1, 2, 3};
  EXPECT_EQ(dense(build_batch_graph(store, GraphKind::mixed, 0, batch, 2), SelfLoops::on),
            dense(build_batch_graph(store, GraphKind::ssl, 0, batch, 2), SelfLoops::on));
  EXPECT_THROW(build_batch_graph(store, GraphKind::mixed, 1.5, batch, 2), Error);
  EXPECT_EQ(edge_mass(build_batch_graph(store, GraphKind::ssl, 0, batch, 1)), 0);
  EXPECT_EQ(edge_mass(build_batch_graph(store, GraphKind::ssl, 0, {}, 2)), 0);
  BatchGraph thirds = build_batch_graph(store, GraphKind::ssl, 0, batch, 1);
  thirds.layers[0].weight = 1.0 / 3;
  EXPECT_EQ(edge_mass(thirds), 0) << "exactly: E = 0 switches the term off";
}

// Graphs of the builders whose positive part stays small.
TEST(BatchGraph, PositivePartKeepsItsForm) {
  const std::vector<int32_t> classes = {0, 1, 0, 2, 1, -1, -1, 2}, labeled = {0, 0, 0, 0, 0, -1, -1, 0},
                             own = {0, 1, 2, 3, 4, 5, 6, 7};
  BatchGraph graph;
  graph.samples = 8;
  graph.layers = {{{0, 1, 0, 2, 1, 3, 4, 2}, 5, 1.0, {}}, {labeled, 1, -1.0, {}}, {classes, 3, 1.0, {}}};
  expect_sums_equal_dense(graph);
  expect_parts_equal_dense(graph);
  EXPECT_EQ(positive_part(graph).layers.size(), 1u) << "signed: what is left are the components";
  EXPECT_TRUE(positive_part(graph).rest.offsets.empty());

  graph.layers = {{own, 8, 0.5, {}}, {classes, 3, 0.5, {1, -1, -0.5, -1, 1, 0, -0.5, 0, 0}}};
  expect_sums_equal_dense(graph);
  expect_parts_equal_dense(graph);
  EXPECT_EQ(positive_part(graph).layers.size(), 2u) << "a table and the samples' own blocks";
  EXPECT_TRUE(positive_part(graph).rest.offsets.empty());

  graph.layers.clear();
  graph.features = {{{1, -2, 0, 3, -0.5, 0.25, -1, 2}, 1, 0.5}};
  expect_sums_equal_dense(graph);
  expect_parts_equal_dense(graph);
  EXPECT_EQ(positive_part(graph).features.size(), 2u) << "one column: by the sign";
  EXPECT_TRUE(positive_part(graph).rest.offsets.empty());
}

TEST(BatchGraph, SampledNegativesAreUnbiased) {
  BatchGraph graph;
  graph.samples = 30;
  Random random(5, Purpose::bench);
  graph.layers = {random_layer(random, 30, 3, 2.0), {std::vector<int32_t>(30, 0), 1, -1.0, {}}};
  graph.rest = random_rest(30, 40, Signs::any, 6);
  const std::vector<double> g = [&] {
    BatchGraph one = graph;
    one.views = 1;
    return dense(one, SelfLoops::on);
  }();
  std::vector<double> mean(900, 0), square(900, 0);
  const int draws = 4000;
  for (int step = 0; step < draws; ++step) {
    BatchGraph sampled;
    sampled.samples = 30;
    sampled.views = 1;
    sampled.rest = negative_pairs(graph, {4, 3, static_cast<uint64_t>(step)});
    if (step < 3) check(sampled);
    ASSERT_LE(sampled.rest.columns.size(), 2u * 4 * 30);
    const std::vector<double> s = dense(sampled, SelfLoops::on);
    for (size_t k = 0; k < s.size(); ++k) {
      mean[k] += s[k] / draws;
      square[k] += s[k] * s[k] / draws;
    }
  }
  for (size_t k = 0; k < g.size(); ++k) {
    const double deviation = std::sqrt(std::max(square[k] - mean[k] * mean[k], 0.0) / draws);
    ASSERT_NEAR(mean[k], std::min(g[k], 0.0), 5 * deviation + 1e-9) << k;
  }
  const NegativeDraw draw{4, 3, 9};
  EXPECT_EQ(negative_pairs(graph, draw).columns, negative_pairs(graph, draw).columns);
}

TEST(BatchGraph, CheckRefusesABadRest) {
  BatchGraph graph;
  graph.samples = 3;
  graph.rest = {{0, 1, 2, 2}, {1, 0}, {0.5, 0.5}};
  check(graph);
  const auto broken = [&](auto change) {
    BatchGraph g = graph;
    change(g.rest);
    EXPECT_THROW(check(g), Error);
  };
  broken([](SparseRest& r) { r.weights[0] = 0.6; });
  broken([](SparseRest& r) { r.weights[0] = r.weights[1] = std::nan(""); });
  broken([](SparseRest& r) { r.columns[0] = 3; });
  broken([](SparseRest& r) { r.columns[0] = 2; });
  broken([](SparseRest& r) { r.offsets[3] = 1; });
  broken([](SparseRest& r) { r = {{0, 2, 4, 4}, {1, 1, 0, 0}, {1, 1, 1, 1}}; });
}

TEST(BatchGraph, CheckRefusesBadTablesAndFeatures) {
  BatchGraph graph;
  graph.samples = 3;
  graph.layers = {{{0, 1, -1}, 2, 1.0, {1, 2, 2, 1}}};
  graph.features = {{{1, 2, 3, 4, 5, 6}, 2, 1.0}};
  check(graph);
  const auto broken = [&](auto change) {
    BatchGraph g = graph;
    change(g);
    EXPECT_THROW(check(g), Error);
  };
  broken([](BatchGraph& g) { g.layers[0].table[1] = 3; });
  broken([](BatchGraph& g) { g.layers[0].table[0] = std::nan(""); });
  broken([](BatchGraph& g) { g.layers[0].table.pop_back(); });
  broken([](BatchGraph& g) { g.layers[0].block[2] = 2; });
  broken([](BatchGraph& g) { g.features[0].width = 3; });
  broken([](BatchGraph& g) { g.features[0].features[1] = std::nan(""); });
  broken([](BatchGraph& g) { g.features[0].weight = 1.0 / 0.0; });
}

TEST(BatchGraph, SumsOfALargeBatchAreQuick) {
  const int64_t n = 65536;  // all pairs would take minutes
  GraphStore store(n);
  std::vector<int64_t> labels(n), samples(n);
  for (int64_t p = 0; p < n; ++p) {
    labels[p] = p % 3 == 0 ? -1 : p % 1000;
    samples[p] = p;
  }
  store.set_labels(labels);
  for (GraphKind kind : {GraphKind::ssl, GraphKind::supervised, GraphKind::mixed}) {
    const auto start = std::chrono::steady_clock::now();
    const BatchGraph graph = build_batch_graph(store, kind, 0.3, samples, 2);
    EXPECT_GT(edge_mass(graph) + squared_norm(graph, SelfLoops::on), 0);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took.count(), 4000) << "this guards the complexity, the benchmark measures";
  }
}

}  // namespace
}  // namespace pal::graph
