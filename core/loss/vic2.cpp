#include "core/loss/vic2.h"

#include <ATen/ops/zeros_like.h>

#include "core/loss/contrast.h"
#include "core/loss/graph_terms.h"
#include "core/loss/moment_terms.h"

namespace pal::loss {
namespace {

LossResult vic2(const Vic2Options& options, const at::Tensor& embeddings, const Batch& batch, comm::Comm& comm) {
  const at::Tensor z = checked_rows(embeddings, batch, comm);
  const auto rows = static_cast<double>(batch.global_rows());
  const double scale = options.reduction == Reduction::mean && rows > 0 ? 1 / (rows * rows) : 1;
  const at::Tensor dz = at::zeros_like(z);

  const double gram = add_gram_square(dz, z, comm, scale, batch.threads);
  const at::Tensor share = product_share(dz, z, batch, comm, options.self_loops, -4 * scale);
  const double alignment = -2 * sum_shares({share}, comm)[0];
  const double graph = squared_norm(batch.graph, options.self_loops);
  return result_of({{"gram", scale * gram}, {"alignment", scale * alignment}, {"graph", scale * graph}}, dz);
}

}  // namespace

Criterion make_vic2(const Vic2Options& options) {
  return [options](const at::Tensor& z, const Batch& batch, comm::Comm& comm) { return vic2(options, z, batch, comm); };
}

Criterion vic2_criterion(const LossSpec& spec) {
  return make_vic2({spec.self_loops_or(graph::SelfLoops::on), spec.reduction});
}

Criterion make_scl(const Vic2Options& options) {
  return [vic2 = make_vic2(options)](const at::Tensor& z, const Batch& batch, comm::Comm& comm) {
    const UnitRows unit = unit_rows(z);
    LossResult result = vic2(unit.rows, batch, comm);
    result.dz = through_unit_rows(unit, result.dz);
    return result;
  };
}

Criterion scl_criterion(const LossSpec& spec) {
  return make_scl({spec.self_loops_or(graph::SelfLoops::on), spec.reduction});
}

}  // namespace pal::loss
