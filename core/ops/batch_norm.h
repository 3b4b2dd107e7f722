// batch_norm: kernels/batch_norm.h on tensors, by device.
//
// Shapes: sums (2, C) fp64; coefficients (C) of x's type on the CPU, float32 elsewhere. x, y, dx, dy, g and residual
//   have one dense layout: (rows, C), or images in either memory format (channels-last on CUDA).
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/batch_norm.h"

namespace pal::ops {

// The memory format of batch norm on x's device.
at::MemoryFormat channel_format(const at::Tensor& x);

// shift (C) fp64; undefined means 0.
void channel_sums(const at::Tensor& sums, const at::Tensor& x, const at::Tensor& shift, int threads);
struct AffineNumbers {
  at::Tensor shift, scale, offset;
};
// residual may be undefined.
void channel_affine(const at::Tensor& y, const at::Tensor& x, const at::Tensor& residual, const AffineNumbers& numbers,
                    kernels::Activation act, int threads);
// g may be undefined (not stored), y too (no ReLU).
void channel_grad_sums(const at::Tensor& sums, const at::Tensor& g, const at::Tensor& dy, const at::Tensor& y,
                       const at::Tensor& x, const at::Tensor& mean, int threads);
struct GradNumbers {
  at::Tensor shift, a, p, q;
};
void channel_grad(const at::Tensor& dx, const at::Tensor& dy, const at::Tensor& y, const at::Tensor& x,
                  const GradNumbers& numbers, int threads);

}  // namespace pal::ops
