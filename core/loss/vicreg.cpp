#include "core/loss/vicreg.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/graph/signed_parts.h"
#include "core/loss/graph_terms.h"
#include "core/loss/halo.h"
#include "core/ops/graph.h"
#include "core/ops/tensors.h"
#include "kernels/base/error.h"

namespace pal::loss {
namespace {

constexpr int64_t kPairsAtOnce = 65536;  // bounds the memory of their differences

// (pairs) fp64 distances of the listed pairs.
at::Tensor distances(const at::Tensor& z, const at::Tensor& partners, const at::Tensor& rows,
                     const at::Tensor& columns) {
  std::vector<at::Tensor> parts = {ops::empty_doubles({0}, z)};
  for (int64_t at = 0; at < rows.numel(); at += kPairsAtOnce) {
    const int64_t count = std::min(kPairsAtOnce, rows.numel() - at);
    const at::Tensor difference =
        at::index(z, {rows.narrow(0, at, count)}) - at::index(partners, {columns.narrow(0, at, count)});
    parts.push_back(at::linalg_vector_norm(difference, 2, at::IntArrayRef{1}, false, at::kDouble));
  }
  return at::cat(parts);
}

// Collective. Share of Σ_{i≠j} |w_ij| relu(m − ‖z_i − z_j‖)²; dz += scale · its gradient
// −4 Σ_j |w_ij| relu(m − d_ij) / d_ij (z_i − z_j), 0 where d_ij = 0. negatives: symmetric pairs of positions with
// weights below 0, lifted to rows. The margin does not factor through blocks, so pairs are listed
// (core/graph/signed_parts.h).
at::Tensor margin_share(const at::Tensor& dz, const at::Tensor& z, const Batch& batch,
                        const graph::SparseRest& negatives, comm::Comm& comm, double margin, double scale) {
  graph::BatchGraph alone;  // of the negative pairs
  alone.samples = batch.graph.samples;
  alone.views = batch.graph.views;
  alone.rest = negatives;
  const Batch apart = with_graph(batch, std::move(alone));
  if (negatives.offsets.empty()) return ops::zero_doubles({1}, z);
  const Halo halo = make_halo(apart, comm.rank(), graph::SelfLoops::off);
  const at::Tensor partners = gather_partners(halo, z, apart, comm);
  std::vector<int32_t> row;  // of each entry
  for (int64_t i = 0; i < z.size(0); ++i)
    row.insert(row.end(), halo.offsets[i + 1] - halo.offsets[i], static_cast<int32_t>(i));
  const at::Tensor columns = ops::to_device_of(z, halo.columns), strength = -ops::to_device_of(z, halo.weights);
  const at::Tensor d = distances(z, partners, ops::to_device_of(z, row), columns);
  const at::Tensor gap = (margin - d).clamp_min_(0);
  // The gradient's rows Σ_j c_ij (z_i − z_j), c = −|w| gap / d, are those of a sparse graph with weights c.
  const ops::Csr pull{ops::to_device_of(z, halo.offsets), columns, (-strength * gap / d).masked_fill_(d <= 0, 0)};
  ops::graph_rows(dz, {}, z, partners, pull, {kernels::RowForm::difference, 4 * scale, kernels::Into::add},
                  batch.threads);
  return (strength * gap.square()).sum().view({1});
}

LossResult vicreg(const VicregOptions& options, const at::Tensor& embeddings, const Batch& batch, comm::Comm& comm) {
  const at::Tensor z = checked_rows(embeddings, batch, comm);
  const bool mean = options.reduction == Reduction::mean;
  const double dims = mean ? static_cast<double>(z.size(1)) : 1;
  const at::Tensor dz = at::zeros_like(z);

  double invariance = 0, margin = 0;
  const bool negatives = graph::has_negative_weight(batch.graph);
  const double mass = graph::edge_mass(batch.graph);
  if (options.invariance > 0 && mass > 0) {
    const double scale = options.invariance / (dims * (mean ? mass : 1));
    if (negatives) {
      const double m = options.margin > 0 ? options.margin : std::sqrt(2.0 * static_cast<double>(z.size(1)));
      const graph::SparseRest apart = graph::negative_pairs(batch.graph, {.seed = batch.seed, .step = batch.step});
      margin = scale * sum_shares({margin_share(dz, z, batch, apart, comm, m, scale)}, comm)[0];
    }
    const at::Tensor share =
        negatives ? invariance_share(dz, z, with_graph(batch, graph::positive_part(batch.graph)), comm, scale)
                  : invariance_share(dz, z, batch, comm, scale);
    invariance = scale * sum_shares({share}, comm)[0];
  }

  MomentTerms terms;
  if (options.variance > 0 || options.covariance > 0) {
    const bool per_view = options.moments == Moments::per_view;
    const double groups = per_view ? batch.views : 1;
    kernels::MomentsOptions weighted;
    weighted.epsilon = options.epsilon;
    weighted.variance_weight = options.variance / (groups * dims);
    weighted.covariance_weight = options.covariance * (per_view ? 2 : 1) / (groups * dims);
    terms = add_moment_terms(dz, z, batch, comm, options.moments, weighted);
    terms.variance *= weighted.variance_weight;
    terms.covariance *= weighted.covariance_weight;
  }

  LossTerms named = {{"invariance", invariance}, {"variance", terms.variance}, {"covariance", terms.covariance}};
  if (negatives) named.emplace_back("margin", margin);
  return result_of(std::move(named), dz);
}

}  // namespace

Criterion make_vicreg(const VicregOptions& options) {
  return
      [options](const at::Tensor& z, const Batch& batch, comm::Comm& comm) { return vicreg(options, z, batch, comm); };
}

Criterion vicreg_criterion(const LossSpec& spec) {
  VicregOptions options;
  options.invariance = spec.invariance;
  options.variance = spec.variance;
  options.covariance = spec.covariance;
  options.epsilon = spec.epsilon;
  options.moments = spec.moments;
  options.reduction = spec.reduction;
  options.margin = spec.margin;
  return make_vicreg(options);
}

}  // namespace pal::loss
