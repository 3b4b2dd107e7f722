// update_step: the update of one element, the same bits in the CPU's loops and in the CUDA kernels.
//
// No product may fuse with a sum: update.cu is compiled with --fmad=false, and the CPU's compiler runs with ISO C++
// rules, which forbid it.
#pragma once

#include <cmath>

#include "kernels/base/philox.h"
#include "kernels/update.h"

namespace pal::kernels {

template <class T>
PAL_HOST_DEVICE inline void momentum_step(T& p, T& b, T g, const MomentumNumbers<T>& k) {
  const T next = k.momentum * b + k.factor * (g + k.decay * p);
  b = next;
  p -= k.rate * next;
}

template <class T>
PAL_HOST_DEVICE inline void adam_step(T& p, T& m, T& v, T g, const AdamNumbers<T>& k) {
  const T first = k.beta1 * m + k.rest1 * g;
  const T second = k.beta2 * v + k.rest2 * g * g;
  m = first;
  v = second;
  p = k.keep * p - k.rate * first / (std::sqrt(second) * k.root + k.epsilon);
}

}  // namespace pal::kernels
