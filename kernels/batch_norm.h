// batch_norm: per-channel sums and the element-wise maps of batch norm, each pass fused with ReLU and a residual.
//
// Shapes: x, y, dx, dy, residual lie alike in a ChannelGrid; per-channel arrays have `channels` entries.
// Math:   y = act((x − shift)·scale + offset + residual), act the identity or ReLU
//         g = dy where y > 0 (or NaN), 0 elsewhere; without ReLU g = dy
//         dx = a·g + p·(x − shift) + q
// Order:  sums are accumulated in fp64 over fixed tiles: identical bits from run to run and for any number of threads.
//         CPU and CUDA differ in the last bits: other tiles, and a product may fuse with a sum.
//         The caller does what is between the passes (all-reduce, statistics, coefficients): core/model/batch_norm.cpp.
#pragma once

#include "kernels/base/cuda.h"
#include "kernels/base/view.h"

namespace pal::kernels {

// Element (o, c, i) at ((o·channels) + c)·inner + i: images as planes (inner = height·width), or rows (inner = 1:
// matrices and channels-last images).
struct ChannelGrid {
  int64_t outer = 0;
  int64_t channels = 0;
  int64_t inner = 1;
  int64_t size() const { return outer * channels * inner; }
};

enum class Activation { none, relu };

namespace cpu {

// sums_c = Σ (x − shift_c), squares_c = Σ (x − shift_c)². An empty shift is 0.
template <class T>
void channel_sums(Span<double> sums, Span<double> squares, const T* x, Span<const double> shift, ChannelGrid grid,
                  Scratch scratch, Cpu cpu);

// y from x; residual null: none. y may be x.
template <class T>
void channel_affine(T* y, const T* x, const T* residual, Span<const T> shift, Span<const T> scale, Span<const T> offset,
                    ChannelGrid grid, Activation act, Cpu cpu);

// sums_c = Σ g, products_c = Σ g (x − mean_c), and g itself when it is not null. y null: no ReLU.
template <class T>
void channel_grad_sums(Span<double> sums, Span<double> products, T* g, const T* dy, const T* y, const T* x,
                       Span<const double> mean, ChannelGrid grid, Scratch scratch, Cpu cpu);

// dx; y null: no ReLU.
template <class T>
void channel_grad(T* dx, const T* dy, const T* y, const T* x, Span<const T> shift, Span<const T> a, Span<const T> p,
                  Span<const T> q, ChannelGrid grid, Cpu cpu);

// Of channel_sums and channel_grad_sums.
int64_t channel_sums_scratch_bytes(ChannelGrid grid);

}  // namespace cpu

namespace cuda {

// T is float or bf16, coefficients are fp32 and all lies on the device; rows only (inner = 1).
template <class T>
void channel_sums(Span<double> sums, Span<double> squares, const T* x, Span<const double> shift, ChannelGrid grid,
                  Scratch scratch, cudaStream_t stream);
template <class T>
void channel_affine(T* y, const T* x, const T* residual, Span<const float> shift, Span<const float> scale,
                    Span<const float> offset, ChannelGrid grid, Activation act, cudaStream_t stream);
template <class T>
void channel_grad_sums(Span<double> sums, Span<double> products, T* g, const T* dy, const T* y, const T* x,
                       Span<const double> mean, ChannelGrid grid, Scratch scratch, cudaStream_t stream);
template <class T>
void channel_grad(T* dx, const T* dy, const T* y, const T* x, Span<const float> shift, Span<const float> a,
                  Span<const float> p, Span<const float> q, ChannelGrid grid, cudaStream_t stream);
int64_t channel_sums_scratch_bytes(ChannelGrid grid);

}  // namespace cuda

}  // namespace pal::kernels
