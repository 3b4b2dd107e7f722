// sum: one number out of many on the device, in a tree that depends only on their number.
#pragma once

#include "kernels/base/cuda.h"

namespace pal::kernels::cuda {

// *out = Σ x, all on the device. partials: sum_partials(n) doubles of scratch.
void sum(double* out, const double* x, int64_t n, double* partials, cudaStream_t stream);
int64_t sum_partials(int64_t n);

}  // namespace pal::kernels::cuda
