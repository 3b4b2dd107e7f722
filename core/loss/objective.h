// objective: the criterion of a run, with its state between steps and its random draws.
//
// The encoder's outputs are the embeddings z, or [z | p] with the predictions p of a predictor. The criterion takes p,
// or z without a predictor; NNCLR searches neighbors of z. State changes only in commit(), after the gradients proved
// finite.
#pragma once

#include <cstdint>
#include <memory>

#include "core/loss/criterion.h"
#include "core/loss/nnclr.h"
#include "core/loss/sampled_vic2.h"
#include "core/ops/named_tensors.h"

namespace pal::loss {

class Objective {
 public:
  // dims: the embedding's width.
  Objective(const LossSpec& spec, int64_t dims);

  // Draws the pairs of sampled VIC² and sets the seed of the criterion, as a function of (seed, step).
  void prepare(Batch& batch, uint64_t step) const;
  // Collective. outputs (local rows, D or 2 D) without autograd; dz is of their shape.
  LossResult operator()(const at::Tensor& outputs, const Batch& batch, comm::Comm& comm);
  at::Tensor embedding(const at::Tensor& outputs) const { return outputs.narrow(1, 0, dims_); }

  void commit();                    // the step was applied
  void discard();                   // the step was skipped
  ops::NamedTensors state() const;  // for the checkpoint; aliases the state

 private:
  LossResult widened(LossResult result, const at::Tensor& outputs) const;

  const Criterion criterion_;
  const int64_t dims_;
  const uint64_t seed_;
  const int64_t pairs_;  // drawn per step, 0: none
  const PairDraw draw_;
  const bool anchored_;                  // NNCLR: the criterion also takes the embeddings
  std::unique_ptr<SupportQueue> queue_;  // NNCLR with loss.queue > 0
};

}  // namespace pal::loss
