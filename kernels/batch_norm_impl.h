// batch_norm_impl: the loops of batch_norm over one tile, as a table of functions per instruction set.
#pragma once

#include "kernels/batch_norm.h"

namespace pal::kernels {

// A tile is outer indices [begin, end) and channels [first, last) of a grid.
struct ChannelTile {
  ChannelGrid grid;
  int64_t begin, end, first, last;
};

template <class T>
struct BatchNormLoops {
  // sums and squares are written, not added to; shift is never null.
  void (*sums)(double* sums, double* squares, const T* x, const double* shift, const ChannelTile& tile);
  void (*affine)(T* y, const T* x, const T* residual, const T* shift, const T* scale, const T* offset, Activation act,
                 const ChannelTile& tile);
  void (*grad_sums)(double* sums, double* products, T* g, const T* dy, const T* y, const T* x, const double* mean,
                    const ChannelTile& tile);
  void (*grad)(T* dx, const T* dy, const T* y, const T* x, const T* shift, const T* a, const T* p, const T* q,
               const ChannelTile& tile);
};

template <class T>
const BatchNormLoops<T>& batch_norm_loops(Isa isa);  // float, double

}  // namespace pal::kernels
