// nnclr: against a dense softmax, the textbook two-view form, finite differences, any world size; and the queue.
#include "core/loss/nnclr.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/config/config.h"
#include "tests/core/loss/loss_cases.h"

namespace pal::loss {
namespace {

// The anchors of a rank's rows, and a support set of z's type.
Prepare with_support(const at::Tensor& anchors, const at::Tensor& support, at::ScalarType type) {
  return [=](Batch& batch) {
    const at::Tensor all = anchors.view({batch.views, batch.graph.samples, anchors.size(1)});
    batch.anchors = all.narrow(1, batch.begin, batch.local_positions())
                        .reshape({batch.local_rows(), anchors.size(1)})
                        .to(type)
                        .contiguous();
    batch.support = support.to(type);
  };
}

// Rows of the support, nearest first for each anchor. `own`: the support holds the batch's samples, and a sample is not
// its own neighbor.
std::vector<std::vector<int64_t>> by_nearness(const at::Tensor& anchors, const at::Tensor& support, bool own) {
  const int64_t dims = anchors.size(1);
  const std::vector<double> a = unit(flat(anchors), dims), s = unit(flat(support), dims);
  std::vector<std::vector<int64_t>> all;
  for (int64_t i = 0; i < anchors.size(0); ++i) {
    std::vector<int64_t> order;
    for (int64_t m = 0; m < support.size(0); ++m) {
      if (!own || m != i % support.size(0)) order.push_back(m);
    }
    std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
      return product(&a[i * dims], &s[x * dims], dims) > product(&a[i * dims], &s[y * dims], dims);
    });
    all.push_back(order);
  }
  return all;
}

// (rows, D): the chosen neighbors.
using LabelStats = std::function<int64_t(int64_t row)>;
std::vector<double> neighbors_of(const at::Tensor& support, int64_t rows, const LabelStats& chosen) {
  const int64_t dims = support.size(1);
  const std::vector<double> s = unit(flat(support), dims);
  std::vector<double> near;
  for (int64_t i = 0; i < rows; ++i)
    near.insert(near.end(), s.begin() + chosen(i) * dims, s.begin() + (chosen(i) + 1) * dims);
  return near;
}

DenseLoss dense_nnclr(const ContrastOptions& options, const graph::BatchGraph& graph, int64_t dims,
                      const std::vector<double>& near) {
  return [=](const std::vector<double>& z) {
    const int64_t n = graph.samples;
    graph::BatchGraph positions = graph;
    positions.views = 1;
    const std::vector<double> g = graph::dense(positions, graph::SelfLoops::on), q = unit(z, dims);
    double sum = 0, mass = 0;
    for (int32_t u = 0; u < graph.views; ++u) {
      for (int32_t v = 0; v < graph.views; ++v) {
        if (u == v) continue;
        for (int64_t p = 0; p < n; ++p) {
          const auto s_of = [&](int64_t r) {
            return product(&near[(u * n + p) * dims], &q[(v * n + r) * dims], dims) / options.temperature;
          };
          double denominator = 0;
          for (int64_t r = 0; r < n; ++r) denominator += std::exp(s_of(r));
          for (int64_t r = 0; r < n; ++r) {
            const double weight = std::max(0.0, g[p * n + r]);
            mass += weight;
            sum += weight * (std::log(denominator) - s_of(r));
          }
        }
      }
    }
    return options.reduction == Reduction::sum || mass == 0 ? sum : sum / mass;
  };
}

TEST(Nnclr, EqualsTheDenseFormulaAndItsFiniteDifferences) {
  const int64_t dims = 4;
  for (int32_t views : {2, 3}) {
    for (const auto& [name, graph] : test_graphs(6, views, graph::Signs::any)) {
      const int64_t rows = graph.samples * views;
      const at::Tensor anchors = random_rows(rows, dims, 4), support = random_rows(17, dims, 6),
                       z = random_rows(rows, dims, 11);
      const at::Tensor first_views = anchors.narrow(0, 0, graph.samples);
      const auto near = by_nearness(anchors, support, false), others = by_nearness(anchors, first_views, true);
      const LabelStats nearest = [&](int64_t i) { return near[i][0]; };
      for (const ContrastOptions& options :
           {ContrastOptions{0.5, Reduction::mean}, ContrastOptions{0.2, Reduction::sum}}) {
        SCOPED_TRACE(name + ", views " + std::to_string(views));
        const auto expect = [&](int64_t k, NeighborSource of, const std::vector<double>& standing) {
          SCOPED_TRACE("neighbors " + std::to_string(k) + (of == NeighborSource::batch ? " in the batch" : ""));
          expect_equal_to_formula(make_nnclr({options, k, of}), dense_nnclr(options, graph, dims, standing), z, graph,
                                  with_support(anchors, support, at::kDouble));
        };
        expect(1, NeighborSource::support, neighbors_of(support, rows, nearest));
        expect(1, NeighborSource::batch, neighbors_of(first_views, rows, [&](int64_t i) { return others[i][0]; }));
        expect(0, NeighborSource::support, unit(flat(anchors), dims));
        // One of the three nearest, by the row's index in the batch.
        expect(3, NeighborSource::support, neighbors_of(support, rows, [&](int64_t i) {
                 return near[i][Random(0, Purpose::pairs, 0, static_cast<uint64_t>(i)).below(3)];
               }));
      }
    }
  }
}

TEST(Nnclr, IsTheSameForAnyWorldSize) {
  for (const auto& [name, graph] : test_graphs(10, 3, graph::Signs::any)) {
    SCOPED_TRACE(name);
    const at::Tensor anchors = random_rows(30, 8, 4), support = random_rows(40, 8, 6), z = random_rows(30, 8, 5);
    for (const auto& [k, of] : {std::pair(1, NeighborSource::support), std::pair(3, NeighborSource::support),
                                std::pair(2, NeighborSource::batch), std::pair(0, NeighborSource::support)}) {
      const Criterion criterion = make_nnclr({{0.5, Reduction::mean}, k, of});
      // Both types search the neighbors of the rounded rows.
      const Criterion rounded = [&](const at::Tensor& rows, const Batch& batch, comm::Comm& comm) {
        Batch typed = batch;
        with_support(anchors.to(at::kFloat), support.to(at::kFloat), rows.scalar_type())(typed);
        return criterion(rows, typed, comm);
      };
      expect_any_world_size(rounded, z, graph);
    }
  }
}

// The paper's two terms: cross entropy of nn(z_u) against the predictions of the other view, averaged.
TEST(Nnclr, IsTheTextbookFormOnTwoViews) {
  const int64_t n = 5, dims = 3;
  const graph::BatchGraph graph = test_graphs(n, 2, graph::Signs::positive)[0].second;
  const at::Tensor z = random_rows(2 * n, dims, 3), anchors = random_rows(2 * n, dims, 4),
                   one = random_rows(1, dims, 5);
  // With a support of one row every neighbor is that row.
  const std::vector<double> q = unit(flat(z), dims), s = unit(flat(one), dims);
  double expected = 0;
  for (int64_t v : {0, 1}) {
    double denominator = 0;
    for (int64_t p = 0; p < n; ++p) denominator += std::exp(product(&s[0], &q[(v * n + p) * dims], dims) / 0.1);
    for (int64_t p = 0; p < n; ++p)
      expected -= std::log(std::exp(product(&s[0], &q[(v * n + p) * dims], dims) / 0.1) / denominator) / (2 * n);
  }
  EXPECT_NEAR(run_sliced(make_nnclr({}), z, graph, {0, 2, n}, with_support(anchors, one, at::kDouble)).value, expected,
              1e-12);
}

TEST(Nnclr, BadInputAndRowsThatAreNotFinite) {
  const graph::BatchGraph graph = test_graphs(4, 2, graph::Signs::any)[0].second;
  const at::Tensor z = random_rows(8, 3, 1), support = random_rows(5, 3, 2);
  EXPECT_THROW(run_sliced(make_nnclr({}), z, graph, {0, 4}), Error);
  EXPECT_THROW(make_nnclr({{}, 65}), Error);
  EXPECT_THROW(run_sliced(make_nnclr({{}, 1, NeighborSource::batch}), random_rows(2, 3, 1),
                          test_graphs(1, 2, graph::Signs::positive)[0].second, {0, 1},
                          with_support(random_rows(2, 3, 1), support, at::kDouble)),
               Error);
  EXPECT_THROW(run_sliced(make_nnclr({}), random_rows(4, 3, 1), test_graphs(4, 1, graph::Signs::any)[0].second, {0, 4},
                          with_support(random_rows(4, 3, 1), support, at::kDouble)),
               Error);
  at::Tensor bad = random_rows(8, 3, 4);
  bad[1][0] = std::nan("");
  Batch batch = slice_of(graph, {0, 4}, 0);
  with_support(bad, support, at::kDouble)(batch);
  auto alone = comm::make_local_comm();
  EXPECT_TRUE(std::isnan(make_nnclr({})(z, batch, *alone).value)) << "so that the trainer skips the step";
  at::Tensor zero = z.clone();
  zero[3].zero_();
  const LossResult result = run_sliced(make_nnclr({}), zero, graph, {0, 4}, with_support(zero, support, at::kDouble));
  EXPECT_TRUE(std::isfinite(result.value));
  EXPECT_TRUE(std::isfinite(length(result.dz)));
}

TEST(SupportQueue, IsFirstInFirstOutAndTheSameOnEveryRank) {
  const at::Tensor z = random_rows(10, 3, 2);
  const graph::BatchGraph graph = test_graphs(5, 2, graph::Signs::positive)[0].second;
  const at::Tensor drawn = SupportQueue(7, 3, at::kDouble, 1).rows().clone();
  EXPECT_NEAR(length(drawn[4]), 1, 1e-12);
  EXPECT_FALSE(at::equal(drawn, SupportQueue(7, 3, at::kDouble, 2).rows()));
  comm::run_ranks(2, [&](comm::Comm& comm) {
    Batch batch;
    batch.samples.resize(5);
    batch.rank_begin = {0, 2, 5};
    batch.begin = batch.rank_begin[comm.rank()];
    batch.end = batch.rank_begin[comm.rank() + 1];
    batch.graph = graph;
    const at::Tensor own =
        z.view({2, 5, 3}).narrow(1, batch.begin, batch.local_positions()).reshape({batch.local_rows(), 3});
    SupportQueue queue(7, 3, at::kDouble, 1);
    queue.stage(own, batch, comm);
    queue.discard();
    queue.commit();
    EXPECT_TRUE(at::equal(queue.rows(), drawn)) << "a step that was skipped leaves nothing";
    for (int step = 0; step < 2; ++step) {
      queue.stage(own, batch, comm);
      EXPECT_TRUE(step > 0 || at::equal(queue.rows(), drawn)) << "nothing enters before the guard";
      queue.commit();
    }
    // Two steps of 5 rows: rows 5, 6, 0, 1, 2 are of the second step, 3 and 4 of the first.
    const std::vector<double> rows = flat(queue.rows()), first = unit(flat(z), 3);
    for (int64_t k = 0; k < 10; ++k) {
      if (k < 3 || k >= 5 + 3) continue;
      EXPECT_NEAR(rows[(k % 7) * 3], first[(k % 5) * 3], 1e-12) << k;
    }
    EXPECT_NEAR(rows[0], first[2 * 3], 1e-12);
    EXPECT_EQ(queue.state()[1].second.item<int64_t>(), 3);
  });
}

TEST(SupportQueue, KeepsTheNewestOfALargeBatch) {
  auto comm = comm::make_local_comm();
  Batch batch;
  batch.samples.resize(5);
  batch.rank_begin = {0, 5};
  batch.end = 5;
  const at::Tensor z = random_rows(10, 3, 2);
  SupportQueue queue(3, 3, at::kDouble, 1);
  queue.stage(z, batch, *comm);
  queue.commit();
  const std::vector<double> rows = flat(queue.rows()), first = unit(flat(z), 3);
  for (int64_t k = 0; k < 3; ++k) EXPECT_NEAR(rows[k * 3], first[(k + 2) * 3], 1e-12);
}

}  // namespace
}  // namespace pal::loss
