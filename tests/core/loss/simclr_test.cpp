// simclr: against a dense softmax, finite differences, the textbook NT-Xent, any world size, and rows of norm 0.
#include "core/loss/simclr.h"

#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "tests/core/loss/loss_cases.h"
#include "tests/core/spec_of.h"

namespace pal::loss {
namespace {

DenseLoss dense_simclr(const ContrastOptions& options, const graph::BatchGraph& graph, int64_t dims) {
  return [=](const std::vector<double>& z) {
    const std::vector<double> g = graph::dense(graph, graph::SelfLoops::off), u = unit(z, dims);
    const int64_t rows = graph.samples * graph.views;
    double sum = 0, mass = 0;
    for (int64_t i = 0; i < rows; ++i) {
      double denominator = 0;
      for (int64_t k = 0; k < rows; ++k) {
        if (k != i) denominator += std::exp(product(&u[i * dims], &u[k * dims], dims) / options.temperature);
      }
      for (int64_t j = 0; j < rows; ++j) {
        const double weight = std::max(0.0, g[i * rows + j]);
        mass += weight;
        if (weight > 0)
          sum -= weight * (product(&u[i * dims], &u[j * dims], dims) / options.temperature - std::log(denominator));
      }
    }
    return options.reduction == Reduction::sum || mass == 0 ? sum : sum / mass;
  };
}

TEST(Simclr, EqualsTheDenseFormulaAndItsFiniteDifferences) {
  for (int32_t views : {1, 2, 3}) {
    for (const auto& [name, graph] : test_graphs(6, views, graph::Signs::any)) {
      for (const ContrastOptions& options :
           {ContrastOptions{0.5, Reduction::mean}, ContrastOptions{0.2, Reduction::sum}}) {
        for (int64_t dims : {2, 9}) {
          SCOPED_TRACE(name + ", views " + std::to_string(views) + ", D " + std::to_string(dims));
          expect_equal_to_formula(make_simclr(options), dense_simclr(options, graph, dims),
                                  random_rows(graph.samples * views, dims, 11), graph);
        }
      }
    }
  }
}

TEST(Simclr, IsTheSameForAnyWorldSize) {
  for (const auto& [views, dims] : {std::pair{2, 64}, {3, 5}}) {
    for (const auto& [name, graph] : test_graphs(10, views, graph::Signs::any)) {
      SCOPED_TRACE(name + ", views " + std::to_string(views) + ", D " + std::to_string(dims));
      expect_any_world_size(make_simclr({0.5, Reduction::mean}), random_rows(graph.samples * views, dims, 5), graph);
    }
  }
}

// NT-Xent of the paper: 2N rows, the positive of i is the other view of its sample.
TEST(Simclr, IsNtXentOnTwoViews) {
  const int64_t n = 7, dims = 5;
  const graph::BatchGraph graph = test_graphs(n, 2, graph::Signs::positive)[0].second;
  const at::Tensor z = random_rows(2 * n, dims, 3);
  const std::vector<double> u = unit(flat(z), dims);
  double expected = 0;
  for (int64_t i = 0; i < 2 * n; ++i) {
    double denominator = 0;
    for (int64_t k = 0; k < 2 * n; ++k)
      denominator += k == i ? 0 : std::exp(product(&u[i * dims], &u[k * dims], dims) / 0.2);
    expected -=
        std::log(std::exp(product(&u[i * dims], &u[(i + n) % (2 * n) * dims], dims) / 0.2) / denominator) / (2 * n);
  }
  EXPECT_NEAR(run_sliced(make_simclr({0.2, Reduction::mean}), z, graph, {0, 3, n}).value, expected, 1e-12);
}

TEST(Simclr, RowsOfNormZeroAndSingleRowsStayFinite) {
  const graph::BatchGraph graph = test_graphs(5, 2, graph::Signs::any)[1].second;
  at::Tensor z = random_rows(10, 4, 3);
  z[2].zero_();
  const LossResult result = run_sliced(make_simclr({}), z, graph, {0, 2, 5});
  EXPECT_TRUE(std::isfinite(result.value));
  EXPECT_TRUE(std::isfinite(length(result.dz)));
  EXPECT_EQ(length(result.dz[2]), 0);
  EXPECT_GT(length(result.dz), 1e-3);
  const LossResult one =
      run_sliced(make_simclr({}), random_rows(1, 4, 1), test_graphs(1, 1, graph::Signs::positive)[0].second, {0, 1});
  EXPECT_EQ(one.value, 0);
  EXPECT_EQ(length(one.dz), 0);
}

TEST(Simclr, IsMadeFromTheConfig) {
  const auto graph = test_graphs(6, 2, graph::Signs::any)[2].second;
  const at::Tensor z = random_rows(12, 4, 2);
  const auto value = [&](const Criterion& c) { return run_sliced(c, z, graph, {0, 6}).value; };
  EXPECT_EQ(value(make_criterion(spec_of({"loss.kind=simclr"}).loss)), value(make_simclr({0.1, Reduction::mean})));
  EXPECT_EQ(value(make_criterion(spec_of({"loss.kind=simclr", "loss.temperature=0.3", "loss.reduction=sum"}).loss)),
            value(make_simclr({0.3, Reduction::sum})));
}

}  // namespace
}  // namespace pal::loss
