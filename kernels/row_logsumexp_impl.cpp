// row_logsumexp_impl: the inner loops of row_logsumexp; compiled once per instruction set (PAL_ISA).
#include "kernels/row_logsumexp_impl.h"

#include <limits>

#include "kernels/base/simd.h"

namespace pal::kernels::PAL_ISA {
namespace {

// exp(x): e^x of a vector, within 2 units in the last place.
// x = n ln 2 + r with |r| ≤ ln 2 / 2; e^r by its Taylor series, 2^n by the exponent's bits. Results below the smallest
// normal number are 0, above the largest ∞ (from half a binary order below it); NaN stays NaN.
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

constexpr int64_t kRun = 16;  // exponentials added in T before fp64

template <class T>
Vec<T> larger(Vec<T> a, Vec<T> b) {
  return a > b ? a : b;
}  // a NaN of a is not taken; the exponentials show it

// What is subtracted: the maximum, or 0 as long as there is nothing but −∞.
template <class T>
Vec<T> level(Vec<T> max) {
  return max == -std::numeric_limits<T>::infinity() ? Vec<T>{} : max;
}

template <class T>
void absorb(T* max, double* sum, const T* s, int64_t count, T inverse_temperature) {
  constexpr int64_t kWidth = kPanelWidth<T>;
  for (int64_t lane = 0; lane < kWidth; lane += kLanes<T>) {
    const Vec<T> before = load(max + lane);
    Vec<T> top = load(s + lane);
    for (int64_t j = 1; j < count; ++j) top = larger<T>(load(s + j * kWidth + lane), top);
    const Vec<T> now = larger<T>(top * inverse_temperature, before), at = level<T>(now);
    store(max + lane, now);

    Vec<double> total[kHalves<T>], from[kHalves<T>], to[kHalves<T>];
    widen(from, before);
    widen(to, at);
    for (int h = 0; h < kHalves<T>; ++h)
      total[h] = load(sum + lane + h * kLanes<double>) * exp<double>(from[h] - to[h]);
    for (int64_t j0 = 0; j0 < count; j0 += kRun) {
      Vec<T> part{};
      const int64_t end = j0 + kRun < count ? j0 + kRun : count;
      for (int64_t j = j0; j < end; ++j) part += exp<T>(load(s + j * kWidth + lane) * inverse_temperature - at);
      Vec<double> wide[kHalves<T>];
      widen(wide, part);
      for (int h = 0; h < kHalves<T>; ++h) total[h] += wide[h];
    }
    for (int h = 0; h < kHalves<T>; ++h) store(sum + lane + h * kLanes<double>, total[h]);
  }
}

template <class T>
void weigh(T* s, int64_t count, T inverse_temperature, const T* u, const T* l, const T* v, const T* m) {
  constexpr int64_t kWidth = kPanelWidth<T>;
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t lane = 0; lane < kWidth; lane += kLanes<T>) {
      const Vec<T> x = load(s + j * kWidth + lane) * inverse_temperature;
      Vec<T> w = load(u + lane) * exp<T>(x - load(l + lane));
      if (v) w += v[j] * exp<T>(x - m[j]);
      store(s + j * kWidth + lane, w);
    }
  }
}

template <class T>
void exp_all(T* y, const T* x, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes<T>) {
    const int64_t left = n - i;
    if (left >= kLanes<T>)
      store(y + i, exp<T>(load(x + i)));
    else
      store_n(y + i, exp<T>(load_n(x + i, left)), left);
  }
}

}  // namespace

extern const RowLogSumExpOps<float> row_logsumexp_float;
extern const RowLogSumExpOps<double> row_logsumexp_double;
constinit const RowLogSumExpOps<float> row_logsumexp_float = {absorb<float>, weigh<float>, exp_all<float>};
constinit const RowLogSumExpOps<double> row_logsumexp_double = {absorb<double>, weigh<double>, exp_all<double>};

}  // namespace pal::kernels::PAL_ISA
