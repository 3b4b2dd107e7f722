#include "core/loss/sampled_vic2.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/loss/graph_terms.h"
#include "core/loss/moment_terms.h"
#include "core/ops/tensors.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::loss {
namespace {

using kernels::RowForm;

// The batch with one position per row, ordered by position, then view, so that a rank's rows are still a range. Its
// graph is empty.
Batch rows_as_positions(const Batch& batch) {
  Batch rows;
  rows.samples.resize(batch.global_rows());
  for (int64_t begin : batch.rank_begin) rows.rank_begin.push_back(begin * batch.views);
  rows.begin = batch.begin * batch.views;
  rows.end = batch.end * batch.views;
  rows.views = rows.graph.views = 1;
  rows.graph.samples = batch.global_rows();
  rows.threads = batch.threads;
  return rows;
}

// The weighted pairs as a symmetric sparse graph on such rows; each direction gets half of the weight.
template <class Weight>
graph::SparseRest sparse_pairs(const PairSample& pairs, const Batch& batch, const Weight& weight) {
  const auto n = static_cast<int64_t>(batch.samples.size());
  std::vector<std::tuple<int64_t, int64_t, double>> entries;
  for (size_t k = 0; k < pairs.i.size(); ++k) {
    const int64_t i = pairs.i[k], j = pairs.j[k];
    PAL_CHECK(i >= 0 && i < batch.global_rows() && j >= 0 && j < batch.global_rows(),
              "a sampled pair outside the batch: row", i >= 0 && i < batch.global_rows() ? j : i,
              "rows are view · samples + position");
    PAL_CHECK(pairs.probability[k] > 0 && std::isfinite(pairs.probability[k]), "probability of a sampled pair",
              pairs.probability[k], "give a number above 0");
    const double half = weight(i, j) / pairs.probability[k] / 2;
    const int64_t a = i % n * batch.views + i / n, b = j % n * batch.views + j / n;
    entries.emplace_back(a, b, half);
    entries.emplace_back(b, a, half);
  }
  std::sort(entries.begin(), entries.end());
  graph::SparseRest rest;
  rest.offsets.assign(batch.global_rows() + 1, 0);
  int64_t last = -1;
  for (const auto& [a, b, w] : entries) {
    if (a == last && rest.columns.back() == b) {
      rest.weights.back() += w;
      continue;
    }
    rest.columns.push_back(static_cast<int32_t>(b));
    rest.weights.push_back(w);
    ++rest.offsets[a + 1];
    last = a;
  }
  for (size_t a = 1; a < rest.offsets.size(); ++a) rest.offsets[a] += rest.offsets[a - 1];
  return rest;
}

// G_ij of two rows.
double entry(const graph::BatchGraph& graph, graph::SelfLoops self_loops, int64_t i, int64_t j) {
  if (i == j && self_loops == graph::SelfLoops::off) return 0;
  const int64_t p = i % graph.samples, q = j % graph.samples;
  double weight = graph::smooth_weight(graph, p, q);
  if (graph.rest.offsets.empty()) return weight;
  const auto begin = graph.rest.columns.begin() + graph.rest.offsets[p],
             end = graph.rest.columns.begin() + graph.rest.offsets[p + 1];
  const auto at = std::lower_bound(begin, end, static_cast<int32_t>(q));
  return at != end && *at == q ? weight + graph.rest.weights[at - graph.rest.columns.begin()] : weight;
}

// Collective. Listed pairs in one of the forms: dz += scale · the gradient; returns the share of the value.
at::Tensor listed_share(const at::Tensor& dz, const at::Tensor& z, const Batch& batch, comm::Comm& comm,
                        graph::SparseRest rest, RowForm form, double scale) {
  const int64_t n = batch.local_positions(), dims = z.size(1);
  Batch rows = rows_as_positions(batch);
  rows.graph.rest = std::move(rest);
  const at::Tensor x = z.view({batch.views, n, dims}).transpose(0, 1).reshape(z.sizes()), out = at::zeros_like(x);
  const double factor = form == RowForm::sum ? 2 : 4;  // gradient / row of the kernel
  const at::Tensor share = rest_share(out, x, rows, comm, graph::SelfLoops::on, form, factor * scale);
  dz.view({batch.views, n, dims}).add_(out.view({n, batch.views, dims}).transpose(0, 1));
  return share;
}

// The norms in R: Σ_ij S_ij (‖z_i‖² + ‖z_j‖²) = 2 Σ_i degree_i ‖z_i‖²; dz += scale · its gradient.
at::Tensor norm_share(const at::Tensor& dz, const at::Tensor& z, const at::Tensor& degree, double scale) {
  dz.add_(z * degree.to(z.scalar_type()), 4 * scale);
  return (z.to(at::kDouble).square() * degree).sum().view({1}) * 2;
}

// (local rows, 1) row sums of the listed pairs.
at::Tensor own_degrees(const graph::SparseRest& rest, const Batch& batch, const at::Tensor& z) {
  std::vector<double> degree;
  for (int32_t v = 0; v < batch.views; ++v) {
    for (int64_t p = batch.begin; p < batch.end; ++p) {
      const int64_t row = p * batch.views + v;
      double sum = 0;
      for (int64_t e = rest.offsets[row]; e < rest.offsets[row + 1]; ++e) sum += rest.weights[e];
      degree.push_back(sum);
    }
  }
  return ops::to_device_of(z, degree).clone().unsqueeze(1);
}

LossResult sampled_vic2(const SampledVic2Options& options, const at::Tensor& embeddings, const Batch& batch,
                        comm::Comm& comm) {
  const at::Tensor z = checked_rows(embeddings, batch, comm);
  const bool printed = options.form == SampledForm::printed;
  const auto rows = static_cast<double>(batch.global_rows());
  const double scale = options.reduction == Reduction::mean && rows > 0 ? 1 / (rows * rows) : 1;
  const at::Tensor dz = at::zeros_like(z);

  // Over I: −2 G zᵀz, or G ‖z_i − z_j‖².
  at::Tensor alignment;
  const RowForm form = printed ? RowForm::difference : RowForm::sum;
  const double factor = printed ? 1 : -2;
  if (batch.related) {
    const graph::SparseRest rest = sparse_pairs(
        *batch.related, batch, [&](int64_t i, int64_t j) { return entry(batch.graph, options.self_loops, i, j); });
    alignment = listed_share(dz, z, batch, comm, rest, form, factor * scale) * factor;
  } else if (printed) {
    alignment = invariance_share(dz, z, batch, comm, scale);
  } else {
    alignment = product_share(dz, z, batch, comm, options.self_loops, 2 * factor * scale) * factor;
  }

  // Over J: (zᵀz)², minus the norms in the printed form. The kernel's repulsion form subtracts them already.
  double gram = 0;
  at::Tensor repulsion = ops::zero_doubles({1}, z);
  if (batch.repelled) {
    const graph::SparseRest rest = sparse_pairs(*batch.repelled, batch, [](int64_t, int64_t) { return 1.0; });
    repulsion = listed_share(dz, z, batch, comm, rest, RowForm::repulsion, scale);
    if (!printed) repulsion = repulsion + norm_share(dz, z, own_degrees(rest, batch, z), scale);
  } else {
    gram = add_gram_square(dz, z, comm, scale, batch.threads);
    if (printed) repulsion = -norm_share(dz, z, ops::zero_doubles({z.size(0), 1}, z).fill_(rows), -scale);
  }
  const std::vector<double> sums = sum_shares({alignment, repulsion}, comm);
  return result_of({{"alignment", scale * sums[0]}, {"repulsion", scale * (gram + sums[1])}}, dz);
}

}  // namespace

Criterion make_sampled_vic2(const SampledVic2Options& options) {
  return [options](const at::Tensor& z, const Batch& batch, comm::Comm& comm) {
    return sampled_vic2(options, z, batch, comm);
  };
}

Criterion sampled_vic2_criterion(const LossSpec& spec) {
  return make_sampled_vic2({spec.form, spec.self_loops_or(graph::SelfLoops::on), spec.reduction});
}

PairSample draw_pairs(int64_t rows, int64_t count, PairDraw draw, uint64_t seed, uint64_t step) {
  PAL_CHECK(rows >= 2 && count >= 1, "pairs drawn from a number of rows", rows,
            "draw at least one pair of at least two rows");
  Random random(seed, Purpose::pairs, step);
  const auto n = static_cast<double>(rows), pairs = static_cast<double>(count);
  PairSample sample;
  if (draw == PairDraw::any) {
    for (int64_t k = 0; k < count; ++k) {
      sample.i.push_back(static_cast<int64_t>(random.below(rows)));
      sample.j.push_back(static_cast<int64_t>(random.below(rows)));
    }
    sample.probability.assign(count, pairs / (n * n));
    return sample;
  }
  std::vector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t k = rows - 1; k > 0; --k) std::swap(order[k], order[random.below(k + 1)]);
  const int64_t half = rows / 2;
  for (int64_t k = 0; k < count; ++k) {
    sample.i.push_back(order[random.below(half)]);
    sample.j.push_back(order[half + static_cast<int64_t>(random.below(rows - half))]);
  }
  sample.probability.assign(count, pairs / (n * (n - 1)));  // halves are random: every pair i ≠ j has the same chance
  for (int64_t r = 0; r < rows; ++r) {
    sample.i.push_back(r);
    sample.j.push_back(r);
    sample.probability.push_back(1);
  }
  return sample;
}

}  // namespace pal::loss
