// rounding: the host's rounding mode for the length of a scope.
#pragma once

#include <cfenv>

#include "tests/simgpu/half.h"

namespace simgpu {

// From here to the end of the scope; combine with opaque(), so that the compiler moves nothing across.
class RoundingScope {
 public:
  explicit RoundingScope(Rounding rounding) : before_(std::fegetround()) {
    constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(modes[static_cast<int>(rounding)]);
  }
  ~RoundingScope() { std::fesetround(before_); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  int before_;
};

// A value the compiler knows nothing about, and must have ready here.
template <class T>
T opaque(T value) {
  asm volatile("" : "+m"(value) : : "memory");
  return value;
}

}  // namespace simgpu
