// update: an optimizer's update of runs of elements, in place: on the CPU a table of functions per element type and
// instruction set, on CUDA one launch for the runs of all parameters.
//
// Elements are independent and no product fuses with a sum, so the bits are the same for any set, any cut into runs,
// and on CUDA. Only sums of squares differ on CUDA, in the last bits of fp64: their order of additions does.
// n may be 0; pointers need no alignment.
#pragma once

#include <cstdint>

#include "kernels/base/cuda.h"
#include "kernels/base/isa.h"
#include "kernels/base/view.h"

namespace pal::kernels {

template <class T>
struct MomentumNumbers {
  T rate, momentum, decay;
  T factor;  // LARS's adaptation; 1 for SGD
};

template <class T>
struct AdamNumbers {
  T keep;          // 1 − lr·λ
  T beta1, rest1;  // β₁, 1 − β₁
  T beta2, rest2;
  T rate, root;  // lr / (1 − β₁ᵗ), 1 / sqrt(1 − β₂ᵗ)
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

// Some elements of one parameter with their state, all on the device.
struct UpdateRun {
  float* p;
  float* first;   // momentum, or Adam's first moment
  float* second;  // Adam's second moment; null without
  const float* g;
  int64_t n;          // a few thousand: a block of threads does them all
  int32_t parameter;  // runs of a parameter lie side by side
  int32_t decays;     // 0: λ is 0 and the factor 1 for it
};

namespace cuda {

// runs and factors (by parameter) lie on the device. numbers.factor is not used: factors are.
void momentum(Span<const UpdateRun> runs, Span<const float> factors, const MomentumNumbers<float>& numbers,
              cudaStream_t stream);
void adam(Span<const UpdateRun> runs, const AdamNumbers<float>& numbers, cudaStream_t stream);
// factors[k] = η‖p‖/‖g + λp‖ of parameter k, 1 where a norm is 0 or it does not decay: the factors of LARS, computed on
// the device. begin (parameters + 1): the first run of each.
void adaptation(Span<float> factors, Span<const UpdateRun> runs, Span<const int64_t> begin, float decay, double eta,
                Scratch scratch, cudaStream_t stream);
int64_t adaptation_scratch_bytes(int64_t runs);

}  // namespace cuda

}  // namespace pal::kernels
