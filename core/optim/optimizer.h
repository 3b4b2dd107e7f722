// optimizer: SGD, LARS and AdamW over named parameters.
//
// 1-D parameters (biases, batch-norm scales) are excluded from weight decay and from LARS's adaptation.
// The state is exposed as named tensors for the checkpoint.
#pragma once

#include <cstdint>
#include <memory>

#include "core/ops/named_tensors.h"
#include "core/optim/spec.h"

namespace pal::optim {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Reads each parameter's .grad() and updates it in place. Deterministic for any number of threads.
  virtual void step(double lr) = 0;
  // The tensors alias the state of the optimizer; loading a checkpoint copies into them.
  virtual ops::NamedTensors state() = 0;
};

std::unique_ptr<Optimizer> make_optimizer(const OptimSpec& spec, const ops::NamedTensors& parameters);

}  // namespace pal::optim
