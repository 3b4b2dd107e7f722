// update_impl: the loops of update; compiled once per instruction set (PAL_ISA), left to the compiler's vectorizer.
#include "kernels/update_step.h"

namespace pal::kernels::PAL_ISA {
namespace {

template <class T>
void momentum(T* p, T* b, const T* g, const MomentumNumbers<T>& numbers, int64_t n) {
  const MomentumNumbers<T> k = numbers;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) momentum_step(p[i], b[i], g[i], k);
}

template <class T>
void adam(T* p, T* m, T* v, const T* g, const AdamNumbers<T>& numbers, int64_t n) {
  const AdamNumbers<T> k = numbers;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) adam_step(p[i], m[i], v[i], g[i], k);
}

template <class T>
void squares(double* of_p, double* of_update, const T* p, const T* g, T decay, int64_t n) {
  constexpr int kLanes = 8;
  double a[kLanes] = {}, b[kLanes] = {};
  const auto add = [&](int lane, int64_t i) {
    const double x = p[i], u = g[i] + decay * p[i];
    a[lane] += x * x;
    b[lane] += u * u;
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) add(lane, i + lane);
  for (; i < n; ++i) add(0, i);
  for (int lane = 1; lane < kLanes; ++lane) {
    a[0] += a[lane];
    b[0] += b[lane];
  }
  *of_p = a[0];
  *of_update = b[0];
}

}  // namespace

extern const UpdateOps<float> update_float;
extern const UpdateOps<double> update_double;
const UpdateOps<float> update_float = {momentum<float>, adam<float>, squares<float>};
const UpdateOps<double> update_double = {momentum<double>, adam<double>, squares<double>};

}  // namespace pal::kernels::PAL_ISA
