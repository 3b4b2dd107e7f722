// loss_cases: graphs, batches and slicings for the tests of criteria, and the comparison with a dense formula.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/store.h"
#include "core/loss/criterion.h"
#include "kernels/base/philox.h"
#include "tests/core/comm/thread_comm.h"
#include "tests/core/graph/random_rest.h"

namespace pal::loss {

// Every kind of graph on n positions. Classes span any slicing; the batch of `mixed` holds unlabeled samples.
inline std::vector<std::pair<std::string, graph::BatchGraph>> test_graphs(int64_t n, int32_t views,
                                                                          graph::Signs signs) {
  graph::GraphStore store(n);
  std::vector<int64_t> labels(n), samples(n);
  for (int64_t p = 0; p < n; ++p) {
    labels[p] = p % 4 == 3 ? -1 : p % 3;
    samples[p] = p;
  }
  store.set_labels(labels);
  std::vector<std::pair<std::string, graph::BatchGraph>> graphs;
  graphs.emplace_back("ssl", graph::build_batch_graph(store, graph::GraphKind::ssl, 0, samples, views));
  graphs.emplace_back("supervised", graph::build_batch_graph(store, graph::GraphKind::supervised, 0, samples, views));
  graphs.emplace_back("mixed", graph::build_batch_graph(store, graph::GraphKind::mixed, 0.3, samples, views));
  graph::BatchGraph pairs = graphs[2].second;
  pairs.rest = graph::random_rest(n, 4, signs, 1);
  graphs.emplace_back("mixed and pairs", pairs);
  pairs.layers.clear();
  pairs.rest = graph::random_rest(n, static_cast<int>(n * n), signs, 2);
  graphs.emplace_back("many pairs", pairs);
  pairs.rest = {};
  graphs.emplace_back("nothing", pairs);

  // A table over the classes (signed, or −ℓ), on top of the views; and targets of a regression. A block has no row.
  const double away = signs == graph::Signs::any ? -1 : 0.25;
  graph::BatchGraph table = graphs[0].second;
  table.layers.push_back({{}, 4, 0.7, {1, away, 2 * away, 0, away, 2, 0, 1, 2 * away, 0, 1.5, away, 0, 1, away, 1}});
  for (int64_t p = 0; p < n; ++p) table.layers.back().block.push_back(static_cast<int32_t>(labels[p]));
  graphs.emplace_back("table", table);
  graph::BatchGraph targets = pairs;
  targets.features.push_back({{}, 2, 0.8});
  for (int64_t k = 0; k < 2 * n; ++k) {
    const double y = std::sin(static_cast<double>(3 * k + 1));
    targets.features.back().features.push_back(signs == graph::Signs::any ? y : std::abs(y));
  }
  graphs.emplace_back("regression", targets);
  targets.layers = table.layers;
  targets.rest = graph::random_rest(n, 5, signs, 3);
  graphs.emplace_back("all together", targets);
  return graphs;
}

// Columns of very different spread and nonzero mean, so that the hinge is active for some columns only.
inline at::Tensor random_rows(int64_t rows, int64_t dims, uint64_t seed) {
  at::Tensor z = at::empty({rows, dims}, at::kDouble);
  Random random(seed, Purpose::bench);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < dims; ++k) {
      const double spread = 0.2 + 1.5 * static_cast<double>(k) / static_cast<double>(dims);
      z.data_ptr<double>()[i * dims + k] = spread * random.normal() + 0.5 * static_cast<double>(k % 3);
    }
  }
  return z;
}

// A rank's batch of the graph's samples.
inline Batch slice_of(const graph::BatchGraph& graph, const std::vector<int64_t>& rank_begin, int rank) {
  Batch batch;
  for (int64_t p = 0; p < graph.samples; ++p) batch.samples.push_back(p);
  batch.rank_begin = rank_begin;
  batch.begin = rank_begin[rank];
  batch.end = rank_begin[rank + 1];
  batch.views = graph.views;
  batch.graph = graph;
  return batch;
}

// Adds the inputs of a case to a rank's batch, in which begin and end are set.
using Prepare = std::function<void(Batch&)>;

// Runs the criterion on the slices [rank_begin[r], rank_begin[r + 1]) of a global z (global row = view · n + position).
// Value and terms must be the same bits on every rank; dz is returned in global order.
inline LossResult run_sliced(const Criterion& criterion, const at::Tensor& z, const graph::BatchGraph& graph,
                             const std::vector<int64_t>& rank_begin, const Prepare& prepare = {}) {
  const int ranks = static_cast<int>(rank_begin.size()) - 1;
  const int64_t dims = z.size(1);
  const at::Tensor global = z.view({graph.views, graph.samples, dims});
  LossResult joint;
  joint.dz = at::zeros_like(z);
  const at::Tensor dz = joint.dz.view({graph.views, graph.samples, dims});
  std::mutex mutex;
  comm::run_ranks(ranks, [&](comm::Comm& comm) {
    Batch batch = slice_of(graph, rank_begin, comm.rank());
    if (prepare) prepare(batch);
    const at::Tensor own =
        global.narrow(1, batch.begin, batch.local_positions()).reshape({batch.local_rows(), dims}).contiguous();
    const LossResult result = criterion(own, batch, comm);
    std::lock_guard lock(mutex);
    if (joint.terms.empty()) {
      joint.value = result.value;
      joint.terms = result.terms;
    }
    EXPECT_EQ(result.value, joint.value);
    EXPECT_EQ(result.terms, joint.terms);
    ASSERT_EQ(result.dz.sizes(), own.sizes());
    ASSERT_EQ(result.dz.scalar_type(), z.scalar_type());
    dz.narrow(1, batch.begin, batch.local_positions())
        .copy_(result.dz.view({graph.views, batch.local_positions(), dims}));
  });
  double sum = 0;
  for (const auto& [name, term] : joint.terms) sum += term;
  EXPECT_NEAR(sum, joint.value, 1e-12 * (1 + std::abs(sum))) << "the terms add up";
  return joint;
}

inline double length(const at::Tensor& t) {
  const at::Tensor d = t.to(at::kDouble).contiguous();
  double sum = 0;
  for (int64_t k = 0; k < d.numel(); ++k) sum += d.data_ptr<double>()[k] * d.data_ptr<double>()[k];
  return std::sqrt(sum);
}
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  return length(a.to(at::kDouble) - b.to(at::kDouble));
}

// Normalized rows for a formula; a row of norm 0 stays 0.
inline std::vector<double> unit(std::vector<double> z, int64_t dims) {
  for (size_t i = 0; i < z.size(); i += dims) {
    double square = 0;
    for (int64_t k = 0; k < dims; ++k) square += z[i + k] * z[i + k];
    for (int64_t k = 0; k < dims; ++k) z[i + k] /= square > 0 ? std::sqrt(square) : 1;
  }
  return z;
}
inline double product(const double* a, const double* b, int64_t dims) {
  double sum = 0;
  for (int64_t k = 0; k < dims; ++k) sum += a[k] * b[k];
  return sum;
}

// A loss as a dense formula in double: rows (R, D) flat, row-major.
using DenseLoss = std::function<double(const std::vector<double>& z)>;

inline std::vector<double> flat(const at::Tensor& z) {
  const at::Tensor d = z.to(at::kDouble).contiguous();
  return {d.data_ptr<double>(), d.data_ptr<double>() + d.numel()};
}

// The gradient of the formula by central differences.
inline at::Tensor finite_differences(const DenseLoss& loss, const at::Tensor& z) {
  std::vector<double> x = flat(z);
  at::Tensor gradient = at::zeros(z.sizes(), at::kDouble);
  for (size_t k = 0; k < x.size(); ++k) {
    const double at = x[k], h = 1e-5;
    x[k] = at + h;
    const double up = loss(x);
    x[k] = at - h;
    const double down = loss(x);
    x[k] = at;
    gradient.data_ptr<double>()[k] = (up - down) / (2 * h);
  }
  return gradient;
}

// Value and gradient of the criterion against the formula.
inline void expect_equal_to_formula(const Criterion& criterion, const DenseLoss& formula, const at::Tensor& z,
                                    const graph::BatchGraph& graph, const Prepare& prepare = {}) {
  const LossResult result = run_sliced(criterion, z, graph, {0, graph.samples}, prepare);
  const double expected = formula(flat(z));
  EXPECT_NEAR(result.value, expected, 1e-11 * (1 + std::abs(expected)));
  const at::Tensor gradient = finite_differences(formula, z);
  EXPECT_LT(distance(result.dz, gradient), 1e-7 * (1e-3 + length(gradient)));
}

// The same loss for any W and any slices.
inline void expect_any_world_size(const Criterion& criterion, const at::Tensor& z, const graph::BatchGraph& graph,
                                  const Prepare& prepare = {}) {
  const int64_t n = graph.samples;
  const std::vector<std::vector<int64_t>> slicings = {
      {0, n / 2, n}, {0, n / 3, 2 * n / 3, n}, {0, n / 4, n / 2, 3 * n / 4, n}, {0, 1, n}, {0, 4, 4, n}, {0, 0, n, n}};
  for (at::ScalarType type : {at::kDouble, at::kFloat}) {
    const double value_bound = type == at::kDouble ? 1e-10 : 1e-6, gradient_bound = type == at::kDouble ? 1e-9 : 1e-5;
    const at::Tensor typed = z.to(type);
    const LossResult one = run_sliced(criterion, typed, graph, {0, n}, prepare);
    const LossResult exact = run_sliced(criterion, typed.to(at::kDouble), graph, {0, n}, prepare);
    EXPECT_NEAR(one.value, exact.value, value_bound * (1 + std::abs(exact.value)));
    EXPECT_LE(distance(one.dz, exact.dz), gradient_bound * (1e-12 + length(exact.dz)));
    for (const auto& slices : slicings) {
      SCOPED_TRACE(testing::PrintToString(slices) + (type == at::kDouble ? " float64" : " float32"));
      const LossResult many = run_sliced(criterion, typed, graph, slices, prepare);
      EXPECT_NEAR(many.value, one.value, value_bound * (1 + std::abs(one.value)));
      EXPECT_LE(distance(many.dz, one.dz), gradient_bound * (1e-12 + length(one.dz)));
    }
  }
}

}  // namespace pal::loss
