// vic2: against the dense ‖ZZᵀ − G‖², finite differences, its optimum, and any world size.
#include "core/loss/vic2.h"

#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "core/config/config.h"
#include "tests/core/loss/loss_cases.h"
#include "tests/core/spec_of.h"

namespace pal::loss {
namespace {

DenseLoss dense_vic2(const Vic2Options& options, const graph::BatchGraph& graph, int64_t dims) {
  return [=](const std::vector<double>& z) {
    const std::vector<double> g = graph::dense(graph, options.self_loops);
    const int64_t rows = graph.samples * graph.views;
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < rows; ++j) {
        double product = 0;
        for (int64_t k = 0; k < dims; ++k) product += z[i * dims + k] * z[j * dims + k];
        sum += std::pow(product - g[i * rows + j], 2);
      }
    }
    return options.reduction == Reduction::sum ? sum : sum / static_cast<double>(rows * rows);
  };
}

TEST(Vic2, EqualsTheDenseFormulaAndItsFiniteDifferences) {
  for (int32_t views : {1, 2, 3}) {
    for (const auto& [name, graph] : test_graphs(6, views, graph::Signs::any)) {
      for (graph::SelfLoops loops : {graph::SelfLoops::on, graph::SelfLoops::off}) {
        for (Reduction reduction : {Reduction::mean, Reduction::sum}) {
          for (int64_t dims : {1, 4, 21}) {
            SCOPED_TRACE(name + ", views " + std::to_string(views) + ", loops " +
                         std::to_string(static_cast<int>(loops)) + ", reduction " +
                         std::to_string(static_cast<int>(reduction)) + ", D " + std::to_string(dims));
            const Vic2Options options{loops, reduction};
            const at::Tensor z = random_rows(graph.samples * views, dims, 11);
            expect_equal_to_formula(make_vic2(options), dense_vic2(options, graph, dims), z, graph);
          }
        }
      }
    }
  }
}

TEST(Vic2, IsTheSameForAnyWorldSize) {
  for (int32_t views : {2, 3}) {
    for (const auto& [name, graph] : test_graphs(10, views, graph::Signs::any)) {
      for (graph::SelfLoops loops : {graph::SelfLoops::on, graph::SelfLoops::off}) {
        for (int64_t dims : {5, 64}) {
          SCOPED_TRACE(name + ", views " + std::to_string(views) + ", D " + std::to_string(dims));
          expect_any_world_size(make_vic2({loops, Reduction::mean}), random_rows(graph.samples * views, dims, 5),
                                graph);
        }
      }
    }
  }
}

TEST(Scl, IsVic2OfUnitRows) {
  for (const auto& [name, graph] : test_graphs(6, 2, graph::Signs::any)) {
    SCOPED_TRACE(name);
    const Vic2Options options{graph::SelfLoops::on, Reduction::mean};
    const DenseLoss vic2 = dense_vic2(options, graph, 4);
    at::Tensor z = random_rows(12, 4, 11);
    expect_equal_to_formula(
        make_scl(options), [&](const std::vector<double>& rows) { return vic2(unit(rows, 4)); }, z, graph);
    expect_any_world_size(make_scl(options), z, graph);
    z[1].zero_();
    EXPECT_TRUE(std::isfinite(length(run_sliced(make_scl(options), z, graph, {0, 6}).dz)));
  }
  const auto graph = test_graphs(6, 2, graph::Signs::any)[2].second;
  const Criterion made = make_criterion(spec_of({"loss.kind=scl", "graph.self_loops=off"}).loss);
  EXPECT_EQ(run_sliced(made, random_rows(12, 4, 2), graph, {0, 6}).value,
            run_sliced(make_scl({graph::SelfLoops::off, Reduction::mean}), random_rows(12, 4, 2), graph, {0, 6}).value);
}

TEST(Vic2, ClassesAsAxesAreTheOptimumOfTheSupervisedGraph) {
  graph::GraphStore store(12);
  std::vector<int64_t> labels, samples;
  for (int64_t p = 0; p < 12; ++p) {
    labels.push_back(p % 3);
    samples.push_back(p);
  }
  store.set_labels(labels);
  const graph::BatchGraph graph = graph::build_batch_graph(store, graph::GraphKind::supervised, 0, samples, 2);
  at::Tensor z = at::zeros({24, 5}, at::kDouble);
  for (int64_t i = 0; i < 24; ++i) {
    // A rotation of the axes 0 and 1 preserves the optimum.
    const double c = 0.6, s = 0.8;
    const int64_t label = labels[i % 12];
    if (label == 0) z[i][0] = c, z[i][1] = s;
    if (label == 1) z[i][0] = -s, z[i][1] = c;
    if (label == 2) z[i][2] = 1.0;
  }
  const LossResult result = run_sliced(make_vic2({}), z, graph, {0, 5, 12});
  EXPECT_NEAR(result.value, 0, 1e-13);
  EXPECT_LT(length(result.dz), 1e-13);
  EXPECT_GT(run_sliced(make_vic2({}), z * 1.1, graph, {0, 12}).value, 1e-3);
}

TEST(Vic2, IsMadeFromTheConfig) {
  const auto graph = test_graphs(6, 2, graph::Signs::any)[2].second;
  const at::Tensor z = random_rows(12, 4, 2);
  const auto value = [&](const Criterion& c) { return run_sliced(c, z, graph, {0, 6}).value; };
  EXPECT_EQ(value(make_criterion(spec_of({"loss.kind=vic2"}).loss)),
            value(make_vic2({graph::SelfLoops::on, Reduction::mean})));
  EXPECT_EQ(value(make_criterion(spec_of({"loss.kind=vic2", "graph.self_loops=off", "loss.reduction=sum"}).loss)),
            value(make_vic2({graph::SelfLoops::off, Reduction::sum})));
}

}  // namespace
}  // namespace pal::loss
