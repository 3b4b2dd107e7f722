// flush: the modifiers .ftz and .sat, and the NaN that the machine makes.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace simgpu {

// Denormals become zeros of their sign.
inline float flushed(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}
inline double flushed(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  return std::bit_cast<double>((bits & 0x7ff0000000000000u) == 0 ? bits & 0x8000000000000000u : bits);
}
// Into [0, 1]; NaN becomes 0.
template <class T>
T saturated(T x) {
  return x > T{0} ? (x < T{1} ? x : T{1}) : T{0};
}
// Single precision has one NaN; in double precision a NaN's payload passes through.
inline float canonical(float x) { return x == x ? x : std::bit_cast<float>(0x7fffffffu); }
inline double canonical(double x) { return x; }

struct FloatModifiers {
  bool ftz = false, sat = false;
};

// Op with .ftz on its operands and result, and .sat on its result.
template <class Op, bool kFtz, bool kSat>
struct Modified {
  template <class... T>
  static auto run(T... a) {
    auto result = Op::run((kFtz ? flushed(a) : a)...);
    if constexpr (kFtz) result = flushed(result);
    if constexpr (kSat) return saturated(result);
    return canonical(result);
  }
};

}  // namespace simgpu
