#include "core/loss/vicreg.h"

#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <utility>

#include "core/graph/signed_parts.h"
#include "core/loss/graph_terms.h"
#include "core/loss/margin.h"
#include "kernels/base/error.h"

namespace pal::loss {
namespace {

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
