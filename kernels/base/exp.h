// exp: e^x of a vector, within 2 units in the last place. For *_impl.cpp only, as simd.h.
//
// x = n ln 2 + r with |r| ≤ ln 2 / 2; e^r by its Taylor series, 2^n by the exponent's bits. Results below the smallest
// normal number are 0, above the largest ∞ (from half a binary order below it); NaN stays NaN.
#pragma once

#include "kernels/base/simd.h"

namespace pal::kernels::PAL_ISA {

template <class T>
struct ExpParts;
template <>
struct ExpParts<float> {
  using Int = VectorOf<int32_t, kVectorBytes>::type;
  static constexpr int kDegree = 7, kMantissa = 23, kBias = 127;
  static constexpr float kRound = 0x1.8p23f;  // x + kRound holds the integer nearest to x in its last bits
  static constexpr float kHigh = 0.693359375f, kLow = -2.12194440e-4f;  // ln 2 in two parts; n · kHigh is exact
};
template <>
struct ExpParts<double> {
  using Int = VectorOf<int64_t, kVectorBytes>::type;
  static constexpr int kDegree = 13, kMantissa = 52, kBias = 1023;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kHigh = 6.93147180369123816490e-01, kLow = 1.90821492927058770002e-10;
};

template <class T>
inline Vec<T> exp(Vec<T> x) {
  using Parts = ExpParts<T>;
  using Int = typename Parts::Int;
  constexpr T kLn2 = static_cast<T>(0.693147180559945309417);
  constexpr T kLeast = -Parts::kBias * kLn2, kMost = (Parts::kBias + 1) * kLn2;  // 2^n is 0, and ∞
  x = x < kLeast ? Vec<T>{} + kLeast : x;                                        // these keep NaN
  x = x > kMost ? Vec<T>{} + kMost : x;
  const Vec<T> shifted = x * static_cast<T>(1.44269504088896340736) + Parts::kRound;
  const Vec<T> n = shifted - Parts::kRound;
  const Vec<T> r = (x - n * Parts::kHigh) - n * Parts::kLow;
  double factorial = 1;
  for (int i = 2; i <= Parts::kDegree; ++i) factorial *= i;
  Vec<T> p = Vec<T>{} + static_cast<T>(1 / factorial);
#pragma GCC unroll 16
  for (int i = Parts::kDegree; i >= 1; --i) {
    factorial /= i;
    p = p * r + static_cast<T>(1 / factorial);
  }
  const Vec<T> round = Vec<T>{} + Parts::kRound;
  const Int power = (reinterpret_cast<Int>(shifted) - reinterpret_cast<Int>(round) + Parts::kBias) << Parts::kMantissa;
  return p * reinterpret_cast<Vec<T>>(power);
}

}  // namespace pal::kernels::PAL_ISA
