// schedule: the learning rate of a step: linear warm-up, then half a cosine.
#pragma once

#include <cstdint>

namespace pal::optim {

struct Schedule {
  double peak = 0;           // effective peak learning rate
  int64_t warmup_steps = 0;  // linear from 0; step 0 has peak / warmup_steps
  int64_t total_steps = 0;
  double final_ratio = 1e-3;  // cosine down to peak × final_ratio
  double at(int64_t step) const;
};

}  // namespace pal::optim
