#include "core/loss/vicreg.h"

#include <ATen/ops/zeros_like.h>

#include "core/loss/graph_terms.h"
#include "kernels/base/error.h"

namespace pal {
namespace {

LossResult vicreg(const VicregOptions& options, const at::Tensor& embeddings, const Batch& batch, Comm& comm) {
  PAL_CHECK(!has_negative_weight(batch.graph), "negative weights in the graph of loss.kind", "vicreg",
            "use loss.kind=vic2, or a graph without them");
  const at::Tensor z = checked_rows(embeddings, batch, comm);
  const bool mean = options.reduction == Reduction::mean;
  const double dims = mean ? static_cast<double>(z.size(1)) : 1;
  LossResult result;
  result.dz = at::zeros_like(z);

  double invariance = 0;
  const double mass = edge_mass(batch.graph);
  if (options.invariance > 0 && mass > 0) {
    const double scale = options.invariance / (dims * (mean ? mass : 1));
    invariance = scale * sum_shares({invariance_share(result.dz, z, batch, comm, scale)}, comm)[0];
  }

  MomentTerms terms;
  if (options.variance > 0 || options.covariance > 0) {
    const bool per_view = options.moments == Moments::per_view;
    const double groups = per_view ? batch.views : 1;
    kernels::MomentsOptions weighted;
    weighted.epsilon = options.epsilon;
    weighted.variance_weight = options.variance / (groups * dims);
    weighted.covariance_weight = options.covariance * (per_view ? 2 : 1) / (groups * dims);
    terms = add_moment_terms(result.dz, z, batch, comm, options.moments, weighted);
    terms.variance *= weighted.variance_weight;
    terms.covariance *= weighted.covariance_weight;
  }

  result.terms = {{"invariance", invariance}, {"variance", terms.variance}, {"covariance", terms.covariance}};
  result.value = invariance + terms.variance + terms.covariance;
  return result;
}

}  // namespace

Criterion make_vicreg(const VicregOptions& options) {
  return [options](const at::Tensor& z, const Batch& batch, Comm& comm) { return vicreg(options, z, batch, comm); };
}

}  // namespace pal
