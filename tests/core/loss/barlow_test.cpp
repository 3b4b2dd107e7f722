// barlow: both forms against dense matrices, finite differences, any world size, the optimum, and columns and degrees
// of 0.
#include "core/loss/barlow.h"

#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "tests/core/loss/loss_cases.h"
#include "tests/core/spec_of.h"

namespace pal::loss {
namespace {

// Ĝ of a dense (n, n) graph.
std::vector<double> normalized(std::vector<double> g, int64_t n) {
  std::vector<double> degree(n, 0);
  for (int64_t i = 0; i < n * n; ++i) degree[i / n] += std::abs(g[i]);
  for (int64_t i = 0; i < n * n; ++i) {
    const double d = degree[i / n] * degree[i % n];
    g[i] = d > 0 ? g[i] / std::sqrt(d) : 0;
  }
  return g;
}

// The loss of C = xᵀĜy for x, y (rows, dims).
double correlation_cost(const std::vector<double>& x, const std::vector<double>& y, const std::vector<double>& g,
                        int64_t rows, int64_t dims, double lambda) {
  double sum = 0;
  for (int64_t k = 0; k < dims; ++k) {
    for (int64_t l = 0; l < dims; ++l) {
      double c = 0;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < rows; ++j) c += x[i * dims + k] * g[i * rows + j] * y[j * dims + l];
      }
      sum += k == l ? (1 - c) * (1 - c) : lambda * c * c;
    }
  }
  return sum;
}

DenseLoss dense_barlow(const BarlowOptions& options, const graph::BatchGraph& graph, int64_t dims) {
  return [=](const std::vector<double>& z) {
    const int64_t n = graph.samples, rows = n * graph.views;
    if (options.form == BarlowForm::graph) {
      std::vector<double> x = z;
      for (int64_t k = 0; k < dims; ++k) {
        double square = 0;
        for (int64_t i = 0; i < rows; ++i) square += z[i * dims + k] * z[i * dims + k];
        for (int64_t i = 0; i < rows; ++i) x[i * dims + k] /= square > 0 ? std::sqrt(square) : 1;
      }
      return options.scale * correlation_cost(x, x, normalized(graph::dense(graph, options.self_loops), rows), rows,
                                              dims, options.lambda);
    }
    graph::BatchGraph positions = graph;
    positions.views = 1;
    const std::vector<double> g = normalized(graph::dense(positions, graph::SelfLoops::on), n);
    std::vector<std::vector<double>> x(graph.views);
    for (int32_t v = 0; v < graph.views; ++v) {
      x[v].assign(z.begin() + v * n * dims, z.begin() + (v + 1) * n * dims);
      for (int64_t k = 0; k < dims; ++k) {
        double mean = 0, variance = 0;
        for (int64_t p = 0; p < n; ++p) mean += x[v][p * dims + k] / static_cast<double>(n);
        for (int64_t p = 0; p < n; ++p) variance += std::pow(x[v][p * dims + k] - mean, 2) / static_cast<double>(n);
        for (int64_t p = 0; p < n; ++p)
          x[v][p * dims + k] = (x[v][p * dims + k] - mean) / std::sqrt((variance + 1e-5) * static_cast<double>(n));
      }
    }
    double sum = 0, pairs = 0;
    for (int32_t a = 0; a < graph.views; ++a) {
      for (int32_t b = a + 1; b < graph.views; ++b, ++pairs)
        sum += correlation_cost(x[a], x[b], g, n, dims, options.lambda);
    }
    return options.scale * sum / pairs;
  };
}

std::vector<BarlowOptions> forms() {
  return {{BarlowForm::graph, 0.3, 1, graph::SelfLoops::off},
          {BarlowForm::graph, 0.1, 0.5, graph::SelfLoops::on},
          {BarlowForm::cross, 0.2, 0.5, graph::SelfLoops::off}};
}

TEST(Barlow, EqualsTheDenseFormulaAndItsFiniteDifferences) {
  for (int32_t views : {1, 2, 3}) {
    for (const auto& [name, graph] : test_graphs(6, views, graph::Signs::any)) {
      for (const BarlowOptions& options : forms()) {
        if (options.form == BarlowForm::cross && views == 1) continue;
        for (int64_t dims : {1, 4}) {
          SCOPED_TRACE(name + ", views " + std::to_string(views) + ", form " +
                       std::to_string(static_cast<int>(options.form)) + ", D " + std::to_string(dims));
          expect_equal_to_formula(make_barlow(options), dense_barlow(options, graph, dims),
                                  random_rows(graph.samples * views, dims, 11), graph);
        }
      }
    }
  }
}

TEST(Barlow, IsTheSameForAnyWorldSize) {
  for (const auto& [name, graph] : test_graphs(10, 3, graph::Signs::any)) {
    for (const BarlowOptions& options : forms()) {
      SCOPED_TRACE(name + ", form " + std::to_string(static_cast<int>(options.form)));
      expect_any_world_size(make_barlow(options), random_rows(graph.samples * 3, 6, 5), graph);
    }
  }
}

TEST(Barlow, ScaledClassesAreTheOptimumOfTheSupervisedGraph) {
  const int64_t n = 9;  // classes of 4, 3 and 2 samples
  graph::BatchGraph graph;
  graph.samples = n;
  graph.layers.push_back({{0, 0, 0, 0, 1, 1, 1, 2, 2}, 3, 1.0});
  at::Tensor z = at::zeros({2 * n, 3}, at::kDouble);
  for (int64_t i = 0; i < 2 * n; ++i) z[i][graph.layers[0].block[i % n]] = 1.7;
  const LossResult result =
      run_sliced(make_barlow({BarlowForm::graph, 1.0, 1, graph::SelfLoops::on}), z, graph, {0, 5, n});
  EXPECT_NEAR(result.value, 0, 1e-13);
  EXPECT_LT(length(result.dz), 1e-13);
}

TEST(Barlow, ConstantColumnsAndBadInput) {
  const graph::BatchGraph graph = test_graphs(5, 2, graph::Signs::any)[3].second;
  for (const BarlowOptions& options : forms()) {
    at::Tensor z = random_rows(10, 4, 3);
    z.select(1, 1).zero_();
    const LossResult result = run_sliced(make_barlow(options), z, graph, {0, 2, 5});
    EXPECT_TRUE(std::isfinite(result.value));
    EXPECT_TRUE(std::isfinite(length(result.dz)));
    EXPECT_GT(length(result.dz), 1e-4);
  }
  EXPECT_THROW(run_sliced(make_barlow({BarlowForm::cross}), random_rows(4, 3, 1),
                          test_graphs(4, 1, graph::Signs::any)[0].second, {0, 4}),
               Error);
}

TEST(Barlow, IsMadeFromTheConfig) {
  const auto graph = test_graphs(6, 2, graph::Signs::any)[2].second;
  const at::Tensor z = random_rows(12, 4, 2);
  const auto value = [&](const Criterion& c) { return run_sliced(c, z, graph, {0, 6}).value; };
  EXPECT_EQ(value(make_criterion(spec_of({"loss.kind=barlow"}).loss)),
            value(make_barlow({BarlowForm::cross, 0.005, 1, graph::SelfLoops::off})));
  EXPECT_EQ(value(make_criterion(spec_of({"loss.kind=barlow", "loss.barlow=graph", "loss.lambda=0.2", "loss.scale=0.1",
                                          "graph.self_loops=on"})
                                     .loss)),
            value(make_barlow({BarlowForm::graph, 0.2, 0.1, graph::SelfLoops::on})));
}

}  // namespace
}  // namespace pal::loss
