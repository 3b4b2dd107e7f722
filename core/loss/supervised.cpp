#include "core/loss/supervised.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>

#include <algorithm>

#include "core/loss/graph_terms.h"
#include "core/ops/tensors.h"

namespace pal::loss {
namespace {

LossResult supervised(Supervision kind, Reduction reduction, const at::Tensor& outputs, const Batch& batch,
                      comm::Comm& comm) {
  const std::string name = kind == Supervision::mse ? "mse" : "cross_entropy";
  const at::Tensor z = checked_rows(outputs, batch, comm);
  PAL_CHECK(batch.labels.size() == batch.samples.size(), "labels of the batch for loss.kind=" + name,
            batch.labels.size(), "give one per position, -1 where it is unknown");
  int64_t largest = -1, labeled = 0;
  for (int64_t label : batch.labels) {
    largest = std::max(largest, label);
    labeled += label >= 0;
  }
  PAL_CHECK(largest < z.size(1), "a class beyond the outputs of loss.kind=" + name, largest,
            "let model.projector end with as many as there are classes");
  const double rows = static_cast<double>(labeled * batch.views);
  const double divisor = reduction == Reduction::sum || rows == 0 ? 1
                         : kind == Supervision::mse               ? rows * static_cast<double>(z.size(1))
                                                                  : rows;

  const std::vector<int64_t> own(batch.labels.begin() + batch.begin, batch.labels.begin() + batch.end);
  const at::Tensor label = ops::to_device_of(z, own).repeat({batch.views}).unsqueeze(1);
  const at::Tensor known = (label >= 0).to(at::kDouble), column = label.clamp_min(0);
  LossResult result;
  at::Tensor sum;
  if (kind == Supervision::mse) {
    at::Tensor gap = z.to(at::kDouble);  // a copy even if z is fp64
    if (gap.is_same(z)) gap = gap.clone();
    gap.scatter_add_(1, column, -known).mul_(known);
    sum = gap.square().sum();
    result.dz = gap.mul_(2 / divisor).to(z.scalar_type());
  } else {
    const at::Tensor logs = at::log_softmax(z, 1, at::kDouble);
    sum = -(logs.gather(1, column) * known).sum();
    result.dz = logs.exp().scatter_add_(1, column, -known).mul_(known / divisor).to(z.scalar_type());
  }
  result.value = sum_shares({sum.view({1})}, comm)[0] / divisor;
  result.terms = {{name, result.value}};
  return result;
}

}  // namespace

Criterion make_supervised(Supervision kind, Reduction reduction) {
  return [=](const at::Tensor& z, const Batch& batch, comm::Comm& comm) {
    return supervised(kind, reduction, z, batch, comm);
  };
}

Criterion mse_criterion(const LossSpec& spec) { return make_supervised(Supervision::mse, spec.reduction); }
Criterion cross_entropy_criterion(const LossSpec& spec) {
  return make_supervised(Supervision::cross_entropy, spec.reduction);
}

}  // namespace pal::loss
