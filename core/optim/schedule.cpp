#include "core/optim/schedule.h"

#include <algorithm>
#include <cmath>

namespace pal::optim {

double Schedule::at(int64_t step) const {
  if (step < warmup_steps) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  const auto length = static_cast<double>(std::max<int64_t>(1, total_steps - warmup_steps));
  const double done = std::min(1.0, static_cast<double>(step - warmup_steps) / length);
  const double high = 0.5 * (1 + std::cos(3.14159265358979323846 * done));
  return peak * (high + final_ratio * (1 - high));
}

}  // namespace pal::optim
