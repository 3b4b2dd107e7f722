#include "core/loss/scl.h"

#include "core/loss/unit_rows.h"

namespace pal::loss {

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
