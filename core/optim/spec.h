// spec: which optimizer a run has, and its settings. The table of optimizers is core/config/optimizers.def.
#pragma once

#include <optional>

#include "core/config/choices.h"

namespace pal::optim {

enum class OptimizerKind {
#define PAL_OPTIMIZER(name, slots) name,
#include "core/config/optimizers.def"
};
inline constexpr config::NamedChoice<OptimizerKind> kOptimizers[] = {
#define PAL_OPTIMIZER(name, slots) {#name, OptimizerKind::name},
#include "core/config/optimizers.def"
};

struct OptimSpec {
  OptimizerKind kind = OptimizerKind::lars;
  double momentum = 0.9;
  double weight_decay = 1e-6;
  double lars_eta = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  // Of the schedule (setup::schedule).
  std::optional<double> lr, base_lr;  // peak, or peak per 256 samples of the global batch; one of them, in a run
  double warmup_epochs = 0;
  double final_ratio = 1;
};

}  // namespace pal::optim
