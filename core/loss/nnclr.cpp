#include "core/loss/nnclr.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/index.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/graph/signed_parts.h"
#include "core/loss/contrast.h"
#include "core/loss/graph_terms.h"
#include "core/loss/halo.h"
#include "core/ops/similarity.h"
#include "core/ops/tensors.h"
#include "kernels/base/philox.h"

namespace pal::loss {
namespace {

// (local rows, X), view-major → (B, V, X) of the global batch.
at::Tensor gather_views(const at::Tensor& rows, const Batch& batch, comm::Comm& comm) {
  return gather_rows(rows, batch, comm).view({static_cast<int64_t>(batch.samples.size()), batch.views, rows.size(1)});
}

// (rows, 1): one of the k columns of each local row, drawn by the row's index in the global batch.
at::Tensor one_of(const at::Tensor& ids, const Batch& batch) {
  if (ids.size(1) == 1) return ids;
  const at::Tensor column = at::empty({ids.size(0), 1}, at::kLong);
  const int64_t n = batch.local_positions();
  for (int64_t r = 0; r < ids.size(0); ++r) {
    const int64_t row = r / n * static_cast<int64_t>(batch.samples.size()) + batch.begin + r % n;
    // Purpose::pairs belongs to a loss that draws pairs; this loss draws none, so the stream is free.
    Random random(batch.seed, Purpose::pairs, batch.step, static_cast<uint64_t>(row));
    column.data_ptr<int64_t>()[r] = static_cast<int64_t>(random.below(static_cast<uint64_t>(ids.size(1))));
  }
  return ids.gather(1, column.to(ids.device()));
}

// Collective. (B, V, D): the neighbor of each row, on the unit sphere. A row that is not finite has no neighbor and
// gets NaN, so that the check for finite gradients finds it.
at::Tensor gather_neighbors(const NnclrOptions& options, const Batch& batch, comm::Comm& comm) {
  const at::Tensor& anchors = batch.anchors;
  if (options.neighbors == 0) return gather_views(unit_rows(anchors).rows, batch, comm);
  at::Tensor support = batch.support, own;
  if (options.of == NeighborSource::batch) {
    const int64_t n = batch.local_positions();
    support = gather_rows(unit_rows(anchors.narrow(0, 0, n)).rows, positions_of(batch), comm)
                  .to(anchors.scalar_type())
                  .contiguous();
    own = at::arange(batch.begin, batch.begin + n, anchors.options().dtype(at::kLong))
              .repeat({batch.views})
              .unsqueeze(1)
              .contiguous();
  }
  const int64_t k = std::min(options.neighbors, support.size(0) - (own.defined() ? 1 : 0));
  const at::Tensor ids = at::empty({anchors.size(0), k}, anchors.options().dtype(at::kLong));
  const at::Tensor scores = ops::empty_doubles({anchors.size(0), k}, anchors);
  ops::nearest(ids, scores, anchors, {support, {}, {}}, own, kernels::Metric::cosine, batch.threads);
  const at::Tensor all = gather_views(one_of(ids, batch), batch, comm);
  const at::Tensor rows = unit_rows(at::index(support, {all.clamp_min(0).view({-1})})).rows;
  return rows.view({all.size(0), all.size(1), rows.size(1)})
      .masked_fill_(all < 0, std::numeric_limits<double>::quiet_NaN());
}

void check_nnclr(const NnclrOptions& options, const Batch& batch, const at::Tensor& z) {
  PAL_CHECK(batch.views >= 2, "loss.kind=nnclr on a number of views", batch.views, "give at least two");
  const bool in_batch = options.of == NeighborSource::batch, from_support = options.neighbors > 0 && !in_batch;
  PAL_CHECK(!from_support || (batch.support.defined() && batch.support.size(0) > 0),
            "loss.kind=nnclr without a support set", "", "give the batch constant rows to choose neighbors from");
  PAL_CHECK(!in_batch || options.neighbors == 0 || batch.samples.size() > 1, "loss.queue=0 on a number of samples",
            batch.samples.size(), "give a batch of two or more");
  PAL_ASSERT(batch.anchors.sizes() == z.sizes() && batch.anchors.scalar_type() == z.scalar_type(),
             "anchors are of the type and width of z");
  PAL_ASSERT(!from_support || (batch.support.dim() == 2 && batch.support.size(1) == z.size(1) &&
                               batch.support.scalar_type() == z.scalar_type()),
             "the support is of the type and width of z");
}

LossResult nnclr(const NnclrOptions& options, const at::Tensor& predictions, const Batch& batch, comm::Comm& comm) {
  const at::Tensor z = checked_rows(predictions, batch, comm);
  check_nnclr(options, batch, z);
  const int64_t views = batch.views, n = batch.local_positions(), dims = z.size(1), first = batch.begin;
  const Batch positions = positions_of(batch);
  const std::vector<double> degree = degrees(positions.graph, graph::SelfLoops::on, graph::Weights::positive);
  const double mass = static_cast<double>(views * (views - 1)) * std::accumulate(degree.begin(), degree.end(), 0.0);
  if (mass == 0) return contrast_result(at::zeros_like(z), 0, 0);
  const double scale = options.reduction == Reduction::mean ? 1 / mass : 1;
  const kernels::RowLogSumExpOptions how{options.temperature, scale, kernels::Into::add};
  const at::Tensor all_degrees = ops::to_device_of(z, degree), own_degrees = all_degrees.narrow(0, first, n);

  const UnitRows unit = unit_rows(z);
  const at::Tensor neighbors = gather_neighbors(options, batch, comm).permute({1, 0, 2}).contiguous();  // (V, B, D)
  const at::Tensor candidates = gather_views(unit.rows, batch, comm).permute({1, 0, 2}).contiguous();   // (V, B, D)

  // lse^{uv} of this rank's anchors, a column for each u ≠ v, u first.
  at::Tensor lse = ops::empty_doubles({views * (views - 1), n}, z);
  const auto column = [views](int64_t u, int64_t v) { return u * (views - 1) + (v < u ? v : v - 1); };
  for (int64_t u = 0; u < views; ++u) {
    for (int64_t v = 0; v < views; ++v) {
      if (u != v)
        ops::row_logsumexp(lse[column(u, v)], neighbors[u].narrow(0, first, n), candidates[v], {}, how, batch.threads);
    }
  }
  const at::Tensor all_lse = gather_rows(lse.t().contiguous(), positions, comm).t().contiguous();  // (V (V−1), B)

  // This rank's predictions against all anchors. Predictions have no softmax of their own: degree 0 and a finite lse.
  const at::Tensor contrast = at::zeros_like(unit.rows), none = ops::zero_doubles({n}, z),
                   above = at::full_like(none, 1 / options.temperature);
  for (int64_t v = 0; v < views; ++v) {
    for (int64_t u = 0; u < views; ++u) {
      if (u == v) continue;
      ops::row_logsumexp_gradient(contrast.narrow(0, v * n, n), unit.rows.narrow(0, v * n, n), neighbors[u], {},
                                  {above, none}, {all_lse[column(u, v)], all_degrees}, how, batch.threads);
    }
  }
  // −G⁺ Σ_{u≠v} n^u with all views v as columns of one matrix: one product with the graph of the positions.
  const at::Tensor own = neighbors.narrow(1, first, n);
  const at::Tensor partners = (own.sum(0, true) - own)
                                  .permute({1, 0, 2})
                                  .reshape({n, views * dims})
                                  .contiguous();  // D = 1: reshape may be a view
  at::Tensor attraction = at::zeros_like(partners);
  Batch positive = positions;
  positive.graph = graph::positive_part(positions.graph);
  product_share(attraction, partners, positive, comm, graph::SelfLoops::on, -scale / options.temperature);
  attraction = attraction.view({n, views, dims}).permute({1, 0, 2}).reshape({views * n, dims});

  const at::Tensor aligned = (unit.rows * attraction).sum(at::kDouble).view({1}),
                   contrasted = (lse * own_degrees).sum().view({1});
  const std::vector<double> sums = sum_shares({aligned, contrasted}, comm);
  return contrast_result(through_unit_rows(unit, contrast + attraction), sums[0], scale * sums[1]);
}

}  // namespace

Criterion make_nnclr(const NnclrOptions& options) {
  check_contrast(options);
  PAL_CHECK(options.neighbors >= 0 && options.neighbors <= kernels::kMaxNearest, "loss.neighbors", options.neighbors,
            "give 0 to 64");
  return
      [options](const at::Tensor& z, const Batch& batch, comm::Comm& comm) { return nnclr(options, z, batch, comm); };
}

Criterion nnclr_criterion(const LossSpec& spec) {
  return make_nnclr({{spec.temperature, spec.reduction},
                     spec.neighbors,
                     spec.queue == 0 ? NeighborSource::batch : NeighborSource::support});
}

SupportQueue::SupportQueue(int64_t size, int64_t dims, at::ScalarType type, uint64_t seed)
    : next_(at::zeros({1}, at::kLong)) {
  const at::Tensor drawn = at::empty({size, dims}, at::kDouble);
  double* x = drawn.data_ptr<double>();
  for (int64_t i = 0; i < size; ++i) {
    Random random(seed, Purpose::init, /*step=*/1, static_cast<uint64_t>(i));  // the weights use step 0
    for (int64_t k = 0; k < dims; ++k) *x++ = random.normal();
  }
  rows_ = unit_rows(drawn).rows.to(type);
}

void SupportQueue::stage(const at::Tensor& z, const Batch& batch, comm::Comm& comm) {
  staged_ = gather_rows(unit_rows(z.narrow(0, 0, batch.local_positions())).rows, positions_of(batch), comm);
}

void SupportQueue::commit() {
  if (!staged_.defined()) return;
  const int64_t size = rows_.size(0), keep = std::min(size, staged_.size(0));
  const at::Tensor fresh = staged_.narrow(0, staged_.size(0) - keep, keep);
  const int64_t next = next_.item<int64_t>(), first = std::min(keep, size - next);
  rows_.narrow(0, next, first).copy_(fresh.narrow(0, 0, first));
  rows_.narrow(0, 0, keep - first).copy_(fresh.narrow(0, first, keep - first));
  next_.fill_((next + keep) % size);
  discard();
}

}  // namespace pal::loss
