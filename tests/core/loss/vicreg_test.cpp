// vicreg: against the dense formula of the paper, finite differences, the official two-view code, and any world size.
#include "core/loss/vicreg.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "tests/core/loss/loss_cases.h"
#include "tests/core/spec_of.h"
#include "tests/support.h"

namespace pal::loss {
namespace {

// The two moment terms over the rows [begin, end), by definition.
std::pair<double, double> dense_moments(const std::vector<double>& z, int64_t begin, int64_t end, int64_t dims,
                                        double epsilon) {
  const auto n = static_cast<double>(end - begin);
  std::vector<double> mean(dims, 0);
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t k = 0; k < dims; ++k) mean[k] += z[i * dims + k] / n;
  }
  double variance = 0, covariance = 0;
  for (int64_t k = 0; k < dims; ++k) {
    for (int64_t l = 0; l < dims; ++l) {
      double c = 0;
      for (int64_t i = begin; i < end; ++i) c += (z[i * dims + k] - mean[k]) * (z[i * dims + l] - mean[l]) / (n - 1);
      if (k == l) {
        variance += std::max(0.0, 1 - std::sqrt(c + epsilon));
      } else {
        covariance += c * c;
      }
    }
  }
  return {variance, covariance};
}

DenseLoss dense_vicreg(const VicregOptions& options, const graph::BatchGraph& graph, int64_t dims) {
  return [=](const std::vector<double>& z) {
    const std::vector<double> g = graph::dense(graph, graph::SelfLoops::off);
    const int64_t rows = graph.samples * graph.views;
    double mass = 0, invariance = 0;
    const double margin = options.margin > 0 ? options.margin : std::sqrt(2.0 * static_cast<double>(dims));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < rows; ++j) {
        mass += std::abs(g[i * rows + j]);
        double square = 0;
        for (int64_t k = 0; k < dims; ++k) square += std::pow(z[i * dims + k] - z[j * dims + k], 2);
        const double w = g[i * rows + j];
        invariance += w >= 0 ? w * square : -w * std::pow(std::max(0.0, margin - std::sqrt(square)), 2);
      }
    }
    double variance = 0, covariance = 0;
    if (options.moments == Moments::per_view) {
      for (int32_t v = 0; v < graph.views; ++v) {
        const auto [a, b] = dense_moments(z, v * graph.samples, (v + 1) * graph.samples, dims, options.epsilon);
        variance += a / graph.views;
        covariance += 2 * b / graph.views;
      }
    } else {
      std::tie(variance, covariance) = dense_moments(z, 0, rows, dims, options.epsilon);
    }
    if (options.reduction == Reduction::mean) {
      invariance /= mass > 0 ? mass * static_cast<double>(dims) : 1;
      variance /= static_cast<double>(dims);
      covariance /= static_cast<double>(dims);
    }
    return options.invariance * invariance + options.variance * variance + options.covariance * covariance;
  };
}

TEST(Vicreg, EqualsTheDenseFormulaAndItsFiniteDifferences) {
  for (int32_t views : {2, 3}) {
    for (const auto& [name, graph] : test_graphs(6, views, graph::Signs::positive)) {
      for (Moments moments : {Moments::per_view, Moments::pooled}) {
        for (Reduction reduction : {Reduction::mean, Reduction::sum}) {
          for (int64_t dims : {1, 4, 21}) {  // 21 exceeds the rows of every group: the Gram form
            SCOPED_TRACE(name + ", views " + std::to_string(views) + ", moments " +
                         std::to_string(static_cast<int>(moments)) + ", reduction " +
                         std::to_string(static_cast<int>(reduction)) + ", D " + std::to_string(dims));
            const VicregOptions options{5, 3, 2, 1e-4, moments, reduction};
            const at::Tensor z = random_rows(graph.samples * views, dims, 11);
            expect_equal_to_formula(make_vicreg(options), dense_vicreg(options, graph, dims), z, graph);
          }
        }
      }
    }
  }
}

TEST(Vicreg, IsTheSameForAnyWorldSize) {
  for (int32_t views : {2, 3}) {
    for (const auto& [name, graph] : test_graphs(10, views, graph::Signs::positive)) {
      for (Moments moments : {Moments::per_view, Moments::pooled}) {
        for (int64_t dims : {5, 64}) {
          SCOPED_TRACE(name + ", views " + std::to_string(views) + ", moments " +
                       std::to_string(static_cast<int>(moments)) + ", D " + std::to_string(dims));
          const Criterion criterion = make_vicreg({25, 25, 1, 1e-4, moments, Reduction::mean});
          expect_any_world_size(criterion, random_rows(graph.samples * views, dims, 5), graph);
        }
      }
    }
  }
}

// The published two-view code, line by line, with autograd.
std::pair<double, at::Tensor> official_vicreg(const at::Tensor& z) {
  const at::Tensor leaf = z.clone().requires_grad_(true);
  const int64_t n = z.size(0) / 2, dims = z.size(1);
  const at::Tensor x = leaf.narrow(0, 0, n), y = leaf.narrow(0, n, n);
  const at::Tensor repr = at::mse_loss(x, y);
  const at::Tensor xc = x - x.mean(0), yc = y - y.mean(0);
  const at::Tensor std_x = (xc.var(0) + 0.0001).sqrt(), std_y = (yc.var(0) + 0.0001).sqrt();
  const at::Tensor std = at::relu(1 - std_x).mean() / 2 + at::relu(1 - std_y).mean() / 2;
  const auto off_diagonal = [&](const at::Tensor& c) { return c.pow(2).sum() - c.diagonal().pow(2).sum(); };
  const at::Tensor cov_x = at::mm(xc.t(), xc) / (n - 1), cov_y = at::mm(yc.t(), yc) / (n - 1);
  const at::Tensor cov = off_diagonal(cov_x) / dims + off_diagonal(cov_y) / dims;
  const at::Tensor loss = 25.0 * repr + 25.0 * std + 1.0 * cov;
  loss.backward();
  return {loss.item<double>(), leaf.grad()};
}

TEST(Vicreg, EqualsTheOfficialCodeOnTwoViews) {
  for (int64_t dims : {3, 40}) {
    const auto graph = test_graphs(16, 2, graph::Signs::positive)[0].second;
    const at::Tensor z = random_rows(32, dims, 3);
    const auto [value, gradient] = official_vicreg(z);
    for (const std::vector<int64_t>& slices : {std::vector<int64_t>{0, 16}, {0, 5, 16}}) {
      const LossResult result = run_sliced(make_vicreg({}), z, graph, slices);
      EXPECT_NEAR(result.value, value, 1e-11 * value);
      EXPECT_LT(distance(result.dz, gradient), 1e-10 * length(gradient));
    }
  }
}

TEST(Vicreg, InvarianceOfACliqueNeedsNoPairs) {
  // Σ_{i,j∈c} ‖z_i − z_j‖² = 2 n_c Σ‖z_i‖² − 2‖Σ z_i‖², with 1,000 rows in one block.
  graph::BatchGraph graph;
  graph.samples = 500;
  graph.layers.push_back({std::vector<int32_t>(500, 0), 1, 1.0});
  const at::Tensor z = random_rows(1000, 3, 4);
  double squares = 0, sum[3] = {};
  for (int64_t i = 0; i < 1000; ++i) {
    for (int64_t k = 0; k < 3; ++k) {
      const double x = z.data_ptr<double>()[i * 3 + k];
      squares += x * x;
      sum[k] += x;
    }
  }
  const double expected = 2 * 1000 * squares - 2 * (sum[0] * sum[0] + sum[1] * sum[1] + sum[2] * sum[2]);
  const LossResult result =
      run_sliced(make_vicreg({1, 0, 0, 1e-4, Moments::pooled, Reduction::sum}), z, graph, {0, 123, 500});
  EXPECT_NEAR(result.value, expected, 1e-10 * expected);
}

TEST(Vicreg, SmallDistancesKeepTheirDigitsInFloat32) {
  // Views 1e-3 apart around rows of norm 1: deg ⊙ Z − GZ would be off by percents.
  const auto graph = test_graphs(64, 2, graph::Signs::positive)[0].second;
  at::Tensor z = random_rows(128, 16, 8);
  z.narrow(0, 64, 64).copy_(z.narrow(0, 0, 64) + random_rows(64, 16, 9) * 1e-3);
  const at::Tensor narrow = z.to(at::kFloat);
  const Criterion invariance = make_vicreg({1, 0, 0, 1e-4, Moments::pooled, Reduction::mean});
  const LossResult exact = run_sliced(invariance, narrow.to(at::kDouble), graph, {0, 64});
  const LossResult result = run_sliced(invariance, narrow, graph, {0, 20, 64});
  EXPECT_LT(distance(result.dz, exact.dz), 1e-4 * length(exact.dz));
  EXPECT_NEAR(result.value, exact.value, 1e-5 * exact.value);
}

TEST(Vicreg, BadInput) {
  const auto graph = test_graphs(1, 2, graph::Signs::positive)[0].second;
  const at::Tensor z = random_rows(2, 3, 1);
  // One row has no variance.
  EXPECT_TRUE(contains(error_of(Exit::usage, [&] { run_sliced(make_vicreg({}), z, graph, {0, 1}); }), "at least two"));
  EXPECT_NO_THROW(run_sliced(make_vicreg({25, 25, 1, 1e-4, Moments::pooled, Reduction::mean}), z, graph, {0, 1}));
  EXPECT_NO_THROW(run_sliced(make_vicreg({25, 0, 0, 1e-4, Moments::per_view, Reduction::mean}), z, graph, {0, 1}));
}

TEST(Vicreg, RowsKnownToDifferKeepAMargin) {
  for (int32_t views : {1, 2, 3}) {
    for (const auto& [name, graph] : test_graphs(6, views, graph::Signs::any)) {
      for (double margin : {0.0, 1.5}) {
        for (int64_t dims : {1, 4}) {
          SCOPED_TRACE(name + ", views " + std::to_string(views) + ", margin " + std::to_string(margin) + ", D " +
                       std::to_string(dims));
          const VicregOptions options{5,     3, 2, 1e-4, Moments::pooled, margin > 0 ? Reduction::sum : Reduction::mean,
                                      margin};
          expect_equal_to_formula(make_vicreg(options), dense_vicreg(options, graph, dims),
                                  random_rows(6 * views, dims, 11), graph);
        }
      }
    }
  }
  for (const auto& [name, graph] : test_graphs(10, 2, graph::Signs::any)) {
    SCOPED_TRACE(name);
    expect_any_world_size(make_vicreg({25, 25, 1, 1e-4, Moments::per_view, Reduction::mean, 3}), random_rows(20, 6, 5),
                          graph);
  }
  // Equal rows have no direction of repulsion; the gradient must not be NaN.
  graph::BatchGraph apart = test_graphs(4, 2, graph::Signs::positive)[0].second;
  apart.layers[0].weight = -1;
  const LossResult equal = run_sliced(make_vicreg({}), at::zeros({8, 3}, at::kDouble), apart, {0, 4});
  EXPECT_TRUE(std::isfinite(length(equal.dz)));
  EXPECT_EQ(equal.terms.back().first, "margin");
  EXPECT_NEAR(equal.terms.back().second, 25 * 6 / 3.0, 1e-12) << "m² = 2D for every pair, / D";
}

TEST(Vicreg, IsMadeFromTheConfig) {
  const auto graph = test_graphs(6, 2, graph::Signs::positive)[1].second;
  const at::Tensor z = random_rows(12, 4, 2);
  const Criterion made =
      make_criterion(spec_of({"loss.invariance=5", "loss.variance=3", "loss.covariance=2", "loss.epsilon=0.01",
                              "loss.moments=pooled", "loss.reduction=sum", "loss.margin=2"})
                         .loss);
  const VicregOptions options{5, 3, 2, 0.01, Moments::pooled, Reduction::sum, 2};
  EXPECT_EQ(run_sliced(made, z, graph, {0, 6}).value, run_sliced(make_vicreg(options), z, graph, {0, 6}).value);
  EXPECT_EQ(run_sliced(make_criterion(spec_of().loss), z, graph, {0, 6}).value,
            run_sliced(make_vicreg({}), z, graph, {0, 6}).value);
}

}  // namespace
}  // namespace pal::loss
