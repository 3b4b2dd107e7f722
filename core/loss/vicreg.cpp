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
    Batch related = batch;
    if (negatives) related.graph = graph::positive_part(batch.graph);
    invariance = scale * sum_shares({invariance_share(dz, z, related, comm, scale)}, comm)[0];
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

}  // namespace pal::loss
