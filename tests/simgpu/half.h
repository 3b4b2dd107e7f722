// half: f16 and bf16, by way of double, which holds them, their products and (but for extremes) their sums exactly.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/simgpu/lanes.h"

namespace simgpu {

enum class Rounding : uint8_t { nearest_even, zero, down, up };

// A binary format of 16 bits.
struct Format {
  int mantissa_bits, min_exponent, max_exponent;
};
template <class H>
constexpr Format kFormat{};
template <>
inline constexpr Format kFormat<Half>{10, -14, 15};
template <>
inline constexpr Format kFormat<BFloat>{7, -126, 127};

// To a multiple of the spacing that the format has at this magnitude.
inline double round_multiple(double value, double spacing, Rounding rounding) {
  const double units = value / spacing;  // exact: spacing is a power of two
  switch (rounding) {
    case Rounding::nearest_even:
      return std::nearbyint(units) * spacing;
    case Rounding::zero:
      return std::trunc(units) * spacing;
    case Rounding::down:
      return std::floor(units) * spacing;
    case Rounding::up:
      return std::ceil(units) * spacing;
  }
  return value;
}

template <class H>
H narrow(double value, Rounding rounding = Rounding::nearest_even) {
  constexpr Format f = kFormat<H>;
  constexpr uint16_t infinity = static_cast<uint16_t>((f.max_exponent * 2 + 1) << f.mantissa_bits);
  if (std::isnan(value)) return {0x7fff};
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isinf(value)) return {static_cast<uint16_t>(sign | infinity)};
  if (value == 0) return {sign};
  int exponent = std::max(std::ilogb(value), f.min_exponent);
  const double magnitude = std::fabs(round_multiple(value, std::ldexp(1.0, exponent - f.mantissa_bits), rounding));
  if (magnitude == 0) return {sign};
  exponent = std::max(std::ilogb(magnitude), f.min_exponent);
  if (exponent > f.max_exponent) {
    const bool away = rounding == Rounding::nearest_even || rounding == (sign != 0 ? Rounding::down : Rounding::up);
    return {static_cast<uint16_t>(sign | (away ? infinity : infinity - 1))};
  }
  // Denormals have the exponent field 0 and no hidden bit; adding the fields lets one carry into the next.
  const auto units = static_cast<uint16_t>(std::ldexp(magnitude, f.mantissa_bits - exponent));
  const int field = exponent - f.min_exponent;
  return {static_cast<uint16_t>(sign | ((field << f.mantissa_bits) + units))};
}

inline float widen(BFloat x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
inline float widen(Half x) {
  const int exponent = x.bits >> 10 & 31;
  const int mantissa = x.bits & 1023;
  const float sign = (x.bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31)
    return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
  return exponent == 0 ? sign * std::ldexp(static_cast<float>(mantissa), -24)
                       : sign * std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
}

}  // namespace simgpu
