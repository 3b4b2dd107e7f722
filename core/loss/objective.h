// objective: a run's criterion with what it keeps from step to step and what it draws for a step.
//
// The encoder's outputs are the embeddings z, and with a predictor its predictions beside them, [z | p]: the criterion sees
// p (without a predictor z), NNCLR's neighbors are those of z. Nothing a step brings is kept before its guard has passed.
#pragma once

#include <cstdint>
#include <memory>

#include "core/loss/criterion.h"
#include "core/loss/support_queue.h"
#include "core/ops/named_tensors.h"

namespace pal::loss {

class Objective {
 public:
  // dims: the embedding's width.
  Objective(const LossSpec& spec, int64_t dims);

  // The pairs of sampled VIC² and the seed of what a criterion draws: a function of (seed, step).
  void prepare(Batch& batch, uint64_t step) const;
  // Collective. outputs (local rows, D or 2 D) without autograd; dz is of their shape.
  LossResult operator()(const at::Tensor& outputs, const Batch& batch, comm::Comm& comm);
  at::Tensor embedding(const at::Tensor& outputs) const { return outputs.narrow(1, 0, dims_); }

  void commit();                    // the step passed its guard
  void discard();                   // it did not
  ops::NamedTensors state() const;  // for the checkpoint; aliases what it keeps

 private:
  LossResult widened(LossResult result, const at::Tensor& outputs) const;

  const Criterion criterion_;
  const int64_t dims_;
  const uint64_t seed_;
  const int64_t pairs_;  // drawn in a step, 0: none
  const PairDraw draw_;
  const bool anchored_;                  // NNCLR: the criterion looks at the embeddings, too
  std::unique_ptr<SupportQueue> queue_;  // NNCLR, where neighbors are those of a queue
};

}  // namespace pal::loss
