#include "core/loss/margin.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <algorithm>

#include "core/loss/halo.h"
#include "core/ops/graph.h"
#include "core/ops/tensors.h"

namespace pal::loss {
namespace {

constexpr int64_t kPairsAtOnce = 65536;  // whose differences lie in memory

// (pairs) fp64: the distance of every listed pair.
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

}  // namespace

at::Tensor margin_share(const at::Tensor& dz, const at::Tensor& z, const Batch& batch,
                        const graph::SparseRest& negatives, comm::Comm& comm, double margin, double scale) {
  if (negatives.offsets.empty()) return ops::zero_doubles({1}, z);
  graph::BatchGraph alone;  // of the negative pairs
  alone.samples = batch.graph.samples;
  alone.views = batch.graph.views;
  alone.rest = negatives;
  const Batch apart = with_graph(batch, std::move(alone));
  const Halo halo = make_halo(apart, comm.rank(), graph::SelfLoops::off);
  const at::Tensor partners = gather_partners(halo, z, apart, comm);
  std::vector<int32_t> row;  // of each entry
  for (int64_t i = 0; i < z.size(0); ++i)
    row.insert(row.end(), halo.offsets[i + 1] - halo.offsets[i], static_cast<int32_t>(i));
  const at::Tensor columns = ops::beside(z, halo.columns), strength = -ops::beside(z, halo.weights);
  const at::Tensor d = distances(z, partners, ops::beside(z, row), columns);
  const at::Tensor gap = (margin - d).clamp_min_(0);
  // The gradient's rows Σ_j c_ij (z_i − z_j), c = −|w| gap / d: those of a sparse graph with weights c.
  const ops::Csr pull{ops::beside(z, halo.offsets), columns, (-strength * gap / d).masked_fill_(d <= 0, 0)};
  ops::graph_rows(dz, {}, z, partners, pull, {kernels::RowForm::difference, 4 * scale, kernels::Into::add},
                  batch.threads);
  return (strength * gap.square()).sum().view({1});
}

}  // namespace pal::loss
