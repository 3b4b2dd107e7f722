// threads: a parallel loop over fixed tiles, so that a result never depends on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/base/view.h"

namespace pal::kernels {

// Calls f(begin, end) for consecutive tiles of [0, n). Tiles are `grain` wide whatever the number of threads; a thread
// takes the next free tile. f must not throw.
template <class F>
void parallel_for(Cpu cpu, int64_t n, int64_t grain, const F& f) {
  const int64_t tiles = (n + grain - 1) / grain;
  if (cpu.threads <= 1 || tiles <= 1) {
    for (int64_t t = 0; t < tiles; ++t) f(t * grain, std::min(n, (t + 1) * grain));
    return;
  }
#pragma omp parallel for schedule(dynamic, 1) num_threads(static_cast <int>(std::min <int64_t>(cpu.threads, tiles)))
  for (int64_t t = 0; t < tiles; ++t) f(t * grain, std::min(n, (t + 1) * grain));
}

}  // namespace pal::kernels
