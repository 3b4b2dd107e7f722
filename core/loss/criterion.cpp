// criterion: the factory of losses.
#include "core/loss/criterion.h"

#include <utility>

#include "core/loss/barlow.h"
#include "core/loss/nnclr.h"
#include "core/loss/sampled_vic2.h"
#include "core/loss/simclr.h"
#include "core/loss/supervised.h"
#include "core/loss/vic2.h"
#include "core/loss/vicreg.h"
#include "kernels/base/error.h"

namespace pal::loss {

// vicreg_criterion, simclr_criterion, …: each in the file of that loss.
#define PAL_LOSS(name, cost, target) Criterion name##_criterion(const LossSpec& spec);
#include "core/config/losses.def"

LossResult result_of(LossTerms terms, const at::Tensor& dz) {
  LossResult result{0, std::move(terms), dz};
  for (const auto& term : result.terms) result.value += term.second;
  return result;
}

Batch positions_of(const Batch& batch) {
  Batch positions = batch;
  positions.views = positions.graph.views = 1;
  return positions;
}

Batch with_graph(BatchRows rows, graph::BatchGraph graph) {
  Batch batch;
  static_cast<BatchRows&>(batch) = std::move(rows);
  batch.graph = std::move(graph);
  return batch;
}

Criterion make_criterion(const LossSpec& spec) {
  switch (spec.kind) {
#define PAL_LOSS(name, cost, target) \
  case LossKind::name:               \
    return name##_criterion(spec);
#include "core/config/losses.def"
  }
  PAL_ASSERT(false, "a loss that is not in the table");
}

}  // namespace pal::loss
