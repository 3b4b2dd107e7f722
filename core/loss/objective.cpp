#include "core/loss/objective.h"

#include <ATen/ops/zeros_like.h>

#include "core/ops/named_tensors.h"
#include "kernels/base/error.h"

namespace pal::loss {

Objective::Objective(const LossSpec& spec, int64_t dims)
    : criterion_(make_criterion(spec)),
      dims_(dims),
      seed_(spec.seed),
      pairs_(spec.kind == LossKind::sampled_vic2 ? spec.pairs : 0),
      draw_(spec.draw),
      anchored_(spec.kind == LossKind::nnclr) {
  if (!anchored_ || spec.queue == 0 || spec.neighbors == 0) return;
  queue_ = std::make_unique<SupportQueue>(spec.queue, dims, spec.dtype, seed_);
}

void Objective::prepare(Batch& batch, uint64_t step) const {
  batch.seed = seed_;
  batch.step = step;
  if (pairs_ > 0) batch.repelled = draw_pairs(batch.global_rows(), pairs_, draw_, seed_, step);
}

LossResult Objective::operator()(const at::Tensor& outputs, const Batch& batch, comm::Comm& comm) {
  const bool predicts = outputs.size(1) > dims_;
  PAL_ASSERT(outputs.size(1) == (predicts ? 2 * dims_ : dims_),
             "outputs are embeddings, or embeddings and predictions");
  const at::Tensor seen = predicts ? outputs.narrow(1, dims_, dims_).contiguous() : outputs.contiguous();
  if (!anchored_) return widened(criterion_(seen, batch, comm), outputs);
  Batch with_support = batch;
  with_support.anchors = embedding(outputs).contiguous();
  if (queue_) {
    with_support.support = queue_->rows().to(outputs.device());
    queue_->stage(with_support.anchors, batch, comm);
  }
  return widened(criterion_(seen, with_support, comm), outputs);
}

// The gradient enters through the predictions alone; that of z is 0.
LossResult Objective::widened(LossResult result, const at::Tensor& outputs) const {
  if (outputs.size(1) == dims_) return result;
  const at::Tensor dz = at::zeros_like(outputs);
  dz.narrow(1, dims_, dims_).copy_(result.dz);
  result.dz = dz;
  return result;
}

void Objective::commit() {
  if (queue_) queue_->commit();
}

void Objective::discard() {
  if (queue_) queue_->discard();
}

ops::NamedTensors Objective::state() const { return queue_ ? queue_->state() : ops::NamedTensors{}; }

}  // namespace pal::loss
