// supervised: the two baselines against their formulas, finite differences, any world size, missing and bad labels.
#include "core/loss/supervised.h"

#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "tests/core/loss/loss_cases.h"
#include "tests/core/spec_of.h"

namespace pal::loss {
namespace {

const std::vector<int64_t> kLabels = {0, 3, -1, 1, 1, 2, -1, 0, 3, 2};
const Prepare kLabeled = [](Batch& batch) {
  batch.labels.assign(kLabels.begin(), kLabels.begin() + static_cast<int64_t>(batch.samples.size()));
};

DenseLoss dense_supervised(Supervision kind, Reduction reduction, int64_t samples, int32_t views, int64_t dims) {
  return [=](const std::vector<double>& z) {
    double sum = 0, rows = 0;
    for (int64_t i = 0; i < samples * views; ++i) {
      const int64_t label = kLabels[i % samples];
      if (label < 0) continue;
      ++rows;
      double denominator = 0;
      for (int64_t k = 0; k < dims; ++k) denominator += std::exp(z[i * dims + k]);
      if (kind == Supervision::cross_entropy) sum -= z[i * dims + label] - std::log(denominator);
      for (int64_t k = 0; k < dims && kind == Supervision::mse; ++k)
        sum += std::pow(z[i * dims + k] - (k == label ? 1 : 0), 2);
    }
    if (reduction == Reduction::sum) return sum;
    return sum / (kind == Supervision::mse ? rows * static_cast<double>(dims) : rows);
  };
}

TEST(Supervised, EqualsTheFormulaAndItsFiniteDifferences) {
  for (Supervision kind : {Supervision::mse, Supervision::cross_entropy}) {
    for (Reduction reduction : {Reduction::mean, Reduction::sum}) {
      for (int32_t views : {1, 2}) {
        const graph::BatchGraph graph = test_graphs(6, views, graph::Signs::any)[0].second;
        expect_equal_to_formula(make_supervised(kind, reduction), dense_supervised(kind, reduction, 6, views, 5),
                                random_rows(6 * views, 5, 11), graph, kLabeled);
      }
    }
    expect_any_world_size(make_supervised(kind, Reduction::mean), random_rows(20, 5, 3),
                          test_graphs(10, 2, graph::Signs::any)[0].second, kLabeled);
  }
}

TEST(Supervised, MissingAndBadLabels) {
  const graph::BatchGraph graph = test_graphs(4, 2, graph::Signs::any)[0].second;
  const at::Tensor z = random_rows(8, 3, 1);
  const Criterion made = make_criterion(spec_of({"loss.kind=cross_entropy", "graph.kind=mixed"}).loss);
  const LossResult none = run_sliced(made, z, graph, {0, 2, 4}, [](Batch& batch) { batch.labels.assign(4, -1); });
  EXPECT_EQ(none.value, 0);
  EXPECT_EQ(length(none.dz), 0);
  EXPECT_THROW(run_sliced(made, z, graph, {0, 4}), Error) << "no labels at all";
  EXPECT_THROW(run_sliced(make_criterion(spec_of({"loss.kind=mse", "graph.kind=mixed"}).loss), z, graph, {0, 4},
                          [](Batch& batch) {
                            batch.labels = {0, 1, 2, 3};
                          }),
               Error)
      << "a class beyond the outputs";
}

}  // namespace
}  // namespace pal::loss
