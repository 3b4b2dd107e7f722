// clock: the monotonic clock.
#pragma once

#include <chrono>

namespace pal {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace pal
