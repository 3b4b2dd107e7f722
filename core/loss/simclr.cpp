#include "core/loss/simclr.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/index.h>
#include <ATen/ops/zeros_like.h>

#include <numeric>

#include "core/graph/signed_parts.h"
#include "core/loss/contrast.h"
#include "core/loss/graph_terms.h"
#include "core/loss/halo.h"
#include "core/ops/similarity.h"
#include "core/ops/tensors.h"

namespace pal::loss {
namespace {

LossResult simclr(const ContrastOptions& options, const at::Tensor& embeddings, const Batch& batch, comm::Comm& comm) {
  const at::Tensor z = checked_rows(embeddings, batch, comm);
  const std::vector<double> degree =
      degrees(batch.graph, graph::SelfLoops::off, graph::Weights::positive);  // (samples)
  const double mass = batch.views * std::accumulate(degree.begin(), degree.end(), 0.0);
  if (mass == 0) return contrast_result(at::zeros_like(z), 0, 0);
  const double scale = options.reduction == Reduction::mean ? 1 / mass : 1;
  const kernels::RowLogSumExpOptions how{options.temperature, scale, kernels::Into::overwrite};

  // Gathered rows are ordered by position, then view: row (v, p) is column p V + v for any W.
  const UnitRows unit = unit_rows(z);
  const at::Tensor columns = gather_rows(unit.rows, batch, comm);
  std::vector<int64_t> self;
  for (int32_t v = 0; v < batch.views; ++v) {
    for (int64_t p = batch.begin; p < batch.end; ++p) self.push_back(p * batch.views + v);
  }
  const at::Tensor own = ops::to_device_of(z, self);
  const at::Tensor all_degrees = ops::to_device_of(z, degree).repeat_interleave(batch.views);
  const at::Tensor own_degrees = at::index(all_degrees, {own});

  const at::Tensor lse = ops::empty_doubles({z.size(0)}, z);
  ops::row_logsumexp(lse, unit.rows, columns, own, how, batch.threads);
  lse.masked_fill_(own_degrees <= 0, 0);  // it is −∞ if the batch has a single row
  const at::Tensor all_lse = gather_rows(lse.unsqueeze(1), batch, comm).squeeze(1);
  at::Tensor d = at::empty_like(z);
  ops::row_logsumexp_gradient(d, unit.rows, columns, own, {lse, own_degrees}, {all_lse, all_degrees}, how,
                              batch.threads);

  const Batch positive = with_graph(batch, graph::positive_part(batch.graph));
  const at::Tensor attraction =
      product_share(d, unit.rows, positive, comm, graph::SelfLoops::off, -2 * scale / options.temperature);
  const at::Tensor contrast = (own_degrees * lse).sum().view({1});
  const std::vector<double> sums = sum_shares({attraction, contrast}, comm);
  return contrast_result(through_unit_rows(unit, d), -scale * sums[0] / options.temperature, scale * sums[1]);
}

}  // namespace

Criterion make_simclr(const ContrastOptions& options) {
  check_contrast(options);
  return
      [options](const at::Tensor& z, const Batch& batch, comm::Comm& comm) { return simclr(options, z, batch, comm); };
}

Criterion simclr_criterion(const LossSpec& spec) { return make_simclr({spec.temperature, spec.reduction}); }

}  // namespace pal::loss
