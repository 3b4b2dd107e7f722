// diagnostics: columns of known mean and spread on any ranks, shares of pairs, and the warning of collapse; the
// predictor, queue and draws of the objective.
#include "core/eval/diagnostics.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "core/comm/comm.h"
#include "core/config/config.h"
#include "core/loss/nnclr.h"
#include "core/loss/objective.h"
#include "tests/core/loss/loss_cases.h"
#include "tests/core/spec_of.h"

namespace pal::eval {
namespace {

TEST(Diagnostics, ColumnsAndPairsOfTheGlobalBatch) {
  const graph::BatchGraph graph = loss::test_graphs(6, 2, graph::Signs::any).back().second;
  const at::Tensor z = loss::random_rows(12, 3, 4);
  const std::vector<double> rows = loss::flat(z), g = graph::dense(graph, graph::SelfLoops::off);
  double abs_mean = 0, mean_std = 0, min_std = 1e9;
  for (int64_t k = 0; k < 3; ++k) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < 12; ++i) mean += rows[i * 3 + k] / 12;
    for (int64_t i = 0; i < 12; ++i) variance += std::pow(rows[i * 3 + k] - mean, 2) / 12;
    abs_mean += std::abs(mean) / 3;
    mean_std += std::sqrt(variance) / 3;
    min_std = std::min(min_std, std::sqrt(variance));
  }
  double positive = 0, negative = 0;
  for (double w : g) {
    positive += w > 0 ? 1.0 / (12 * 11) : 0;
    negative += w < 0 ? 1.0 / (12 * 11) : 0;
  }
  ASSERT_GT(negative, 0);
  comm::run_ranks(2, [&](comm::Comm& comm) {
    const loss::Batch batch = loss::slice_of(graph, {0, 2, 6}, comm.rank());
    const at::Tensor own = z.view({2, 6, 3}).narrow(1, batch.begin, batch.local_positions()).reshape({-1, 3});
    const Diagnostics d = diagnose(own, batch, comm);
    EXPECT_NEAR(d.mean_abs_mean, abs_mean, 1e-12);
    EXPECT_NEAR(d.mean_std, mean_std, 1e-12);
    EXPECT_NEAR(d.min_std, min_std, 1e-12);
    EXPECT_NEAR(d.positive_share, positive, 1e-12);
    EXPECT_NEAR(d.negative_share, negative, 1e-12);
    EXPECT_NEAR(d.unknown_share, 1 - positive - negative, 1e-12);
  });
}

TEST(Diagnostics, CountsOfEveryGraph) {
  for (const auto& [name, graph] : loss::test_graphs(7, 3, graph::Signs::any)) {
    SCOPED_TRACE(name);
    const std::vector<double> g = graph::dense(graph, graph::SelfLoops::off);
    double positive = 0, negative = 0, partnered = 0;
    for (int64_t i = 0; i < 21; ++i) {
      bool partner = false;
      for (int64_t j = 0; j < 21; ++j) {
        positive += g[i * 21 + j] > 0;
        negative += g[i * 21 + j] < 0;
        partner |= i % 7 != j % 7 && g[i * 21 + j] > 0;  // a row is view · 7 + position
      }
      partnered += partner;
    }
    EXPECT_EQ(graph::count_pairs(graph).partnered, partnered);
    EXPECT_EQ(graph::count_pairs(graph).positive, positive);
    EXPECT_EQ(graph::count_pairs(graph).negative, negative);
  }
}

TEST(Diagnostics, CollapseIsReportedOnceAfterThreeSteps) {
  Diagnostics fine, pointed, lined;
  fine.unit_std = lined.unit_std = 0.8;
  pointed.unit_std = 0.001;
  fine.effective_rank = pointed.effective_rank = 5;
  lined.effective_rank = 1.01;
  CollapseWatch watch;
  EXPECT_EQ(watch.check(pointed, 8), "");
  EXPECT_EQ(watch.check(pointed, 8), "");
  EXPECT_EQ(watch.check(fine, 8), "") << "not in a row";
  EXPECT_EQ(watch.check(lined, 8), "");
  EXPECT_EQ(watch.check(pointed, 8), "");
  EXPECT_NE(watch.check(lined, 8).find("lie on a line"), std::string::npos);
  EXPECT_EQ(watch.check(pointed, 8), "") << "once";
  CollapseWatch narrow;
  for (int k = 0; k < 5; ++k) EXPECT_EQ(narrow.check(lined, 2), "") << "two columns may well be one";
  // Rows around one direction have a small unit_std, rows over the whole sphere do not.
  auto alone = comm::make_local_comm();
  const graph::BatchGraph graph = loss::test_graphs(40, 2, graph::Signs::any)[0].second;
  const loss::Batch batch = loss::slice_of(graph, {0, 40}, 0);
  const at::Tensor z = loss::random_rows(80, 16, 4);
  EXPECT_LT(diagnose(z * 1e-4 + 3, batch, *alone).unit_std, 0.02);
  EXPECT_GT(diagnose(z, batch, *alone).unit_std, 0.5);
}

// Rows of known spread in uneven slices on three ranks, in both forms; the mean has no effect.
TEST(EffectiveRank, KnownCasesOfTheGlobalBatch) {
  const at::Tensor eye = at::cat({at::eye(6, at::kDouble), -at::eye(6, at::kDouble)});
  const auto expect_rank = [](const at::Tensor& rows, double rank, double tolerance) {
    const int64_t n = rows.size(0);
    graph::BatchGraph graph;
    graph.samples = n;
    graph.views = 1;
    comm::run_ranks(3, [&](comm::Comm& comm) {
      const loss::Batch batch = loss::slice_of(graph, {0, 1, 3, n}, comm.rank());
      EXPECT_NEAR(effective_rank(rows.narrow(0, batch.begin, batch.local_positions()).contiguous(), batch, comm), rank,
                  tolerance);
    });
  };
  expect_rank(eye, 6, 1e-12);                                                  // equal spread in all directions
  expect_rank(at::cat({eye, at::zeros({12, 18}, at::kDouble)}, 1), 6, 1e-12);  // the same in Gram form
  expect_rank(at::arange(5, at::kDouble).reshape({5, 1}).expand({5, 9}).contiguous(), 1, 1e-12);  // one direction
  expect_rank(at::ones({4, 3}), 0, 0);  // collapsed to a point
  expect_rank(eye + 1e6, 6, 1e-6);      // the mean does not count
}

TEST(Objective, PredictionsTakeTheGradientAndTheQueueTheEmbeddings) {
  loss::Objective objective(spec_of({"loss.kind=nnclr", "loss.queue=6", "train.dtype=float64", "train.seed=4"}).loss,
                            3);
  auto alone = comm::make_local_comm();
  const graph::BatchGraph graph = loss::test_graphs(4, 2, graph::Signs::any)[0].second;
  loss::Batch batch = loss::slice_of(graph, {0, 4}, 0);
  const at::Tensor z = loss::random_rows(8, 3, 1), p = loss::random_rows(8, 3, 2);
  const at::Tensor before = objective.state()[0].second.clone();
  const loss::LossResult result = objective(at::cat({z, p}, 1), batch, *alone);
  EXPECT_EQ(loss::length(result.dz.narrow(1, 0, 3)), 0);
  batch.support = before;
  batch.anchors = z;
  const loss::LossResult expected = loss::make_nnclr({})(p, batch, *alone);
  EXPECT_EQ(result.value, expected.value);
  EXPECT_EQ(loss::distance(result.dz.narrow(1, 3, 3), expected.dz), 0);
  objective.discard();
  EXPECT_TRUE(at::equal(objective.state()[0].second, before));
  objective(at::cat({z, p}, 1), batch, *alone);
  objective.commit();
  EXPECT_FALSE(at::equal(objective.state()[0].second, before));
  EXPECT_TRUE(at::equal(objective.embedding(at::cat({z, p}, 1)), z));
  // In-batch and plain SSL: no queue is kept, but the embeddings are used.
  for (const char* setting : {"loss.queue=0", "loss.neighbors=0"}) {
    loss::Objective other(spec_of({"loss.kind=nnclr", setting, "train.dtype=float64", "train.seed=4"}).loss, 3);
    EXPECT_TRUE(other.state().empty());
    const double value = other(at::cat({z, p}, 1), batch, *alone).value;
    const bool plain = std::string(setting) == "loss.neighbors=0";
    EXPECT_EQ(value, loss::make_nnclr(
                         {{}, plain ? 0 : 1, plain ? loss::NeighborSource::support : loss::NeighborSource::batch})(
                         p, batch, *alone)
                         .value)
        << setting;
    other.commit();
  }
}

TEST(Objective, DrawsAreAFunctionOfTheStep) {
  const loss::Objective objective(spec_of({"loss.kind=sampled_vic2", "loss.pairs=9"}).loss, 3);
  const graph::BatchGraph graph = loss::test_graphs(4, 2, graph::Signs::any)[0].second;
  loss::Batch a = loss::slice_of(graph, {0, 4}, 0), b = a, c = a;
  objective.prepare(a, 5);
  objective.prepare(b, 5);
  objective.prepare(c, 6);
  ASSERT_TRUE(a.repelled.has_value());
  EXPECT_EQ(a.repelled->i.size(), 9u);
  EXPECT_EQ(a.repelled->i, b.repelled->i);
  EXPECT_NE(a.repelled->i, c.repelled->i);
  loss::Batch all = loss::slice_of(graph, {0, 4}, 0);
  loss::Objective(spec_of({"loss.kind=sampled_vic2"}).loss, 3).prepare(all, 5);
  EXPECT_FALSE(all.repelled.has_value());
}

// SimCLR sends the rows and one number per row, and no more.
TEST(CountingComm, BytesOfALoss) {
  const graph::BatchGraph graph = loss::test_graphs(10, 2, graph::Signs::any)[0].second;
  comm::run_ranks(2, [&](comm::Comm& comm) {
    comm::CountingComm counted(comm);
    const loss::Batch batch = loss::slice_of(graph, {0, 4, 10}, comm.rank());
    const loss::Criterion criterion = loss::make_criterion(spec_of({"loss.kind=simclr"}).loss);
    criterion(loss::random_rows(batch.local_rows(), 8, 1), batch, counted);
    EXPECT_EQ(counted.bytes(), 20 * 8 * 8 + 20 * 8 + 2 * 8) << "20 rows of 8 doubles, 20 lse, 2 sums";
  });
  auto alone = comm::make_local_comm();
  comm::CountingComm counted(*alone);
  loss::make_criterion(spec_of({"loss.kind=simclr"}).loss)(loss::random_rows(20, 8, 1),
                                                           loss::slice_of(graph, {0, 10}, 0), counted);
  EXPECT_EQ(counted.bytes(), 0);
}

}  // namespace
}  // namespace pal::eval
