// optimizer: SGD, LARS and AdamW over named parameters.
//
// 1-D parameters (biases, batch-norm scales) are excluded from weight decay and from LARS's adaptation.
// The state is exposed as named tensors for the checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/ops/named_tensors.h"

namespace pal::optim {

struct OptimSpec {
  std::string kind = "lars";  // sgd, lars, adamw
  double momentum = 0.9;
  double weight_decay = 1e-6;
  double lars_eta = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};

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
