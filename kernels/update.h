// update: an optimiser's update of a run of elements, in place; a table of functions per element type and instruction set.
//
// Elements are independent and no product fuses with a sum, so the bits are the same for any set and any cut into runs.
// n may be 0; pointers need no alignment.
#pragma once

#include <cstdint>

#include "kernels/base/isa.h"

namespace pal::kernels {

template <class T>
struct MomentumNumbers {
  T rate, momentum, decay;
  T factor;  // LARS's adaptation; 1 for SGD
};

template <class T>
struct AdamNumbers {
  T keep;              // 1 − lr·λ
  T beta1, rest1;      // β₁, 1 − β₁
  T beta2, rest2;
  T rate, root;        // lr / (1 − β₁ᵗ), 1 / sqrt(1 − β₂ᵗ)
  T epsilon;
};

template <class T>
struct UpdateOps {
  // b = μ b + factor (g + λ p); p −= rate · b
  void (*momentum)(T* p, T* b, const T* g, const MomentumNumbers<T>& numbers, int64_t n);
  // m = β₁ m + (1−β₁) g; v = β₂ v + (1−β₂) g²; p = keep · p − rate · m / (sqrt(v) · root + ε)
  void (*adam)(T* p, T* m, T* v, const T* g, const AdamNumbers<T>& numbers, int64_t n);
  // Σ p² and Σ (g + λ p)², in fp64 over eight lanes that are added in order: the same bits for any set.
  void (*squares)(double* of_p, double* of_update, const T* p, const T* g, T decay, int64_t n);
};

template <class T>
const UpdateOps<T>& update_ops(Isa isa);  // float, double

}  // namespace pal::kernels
