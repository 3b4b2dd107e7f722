// tridiagonal: the inner loops of a symmetric eigensolver (core/theory/top_eigen), a table per instruction set.
//
// Vectors and rows are aligned to 64 bytes and padded with zeros to a stride of a multiple of eight.
#pragma once

#include <cstdint>

#include "kernels/base/isa.h"

namespace pal::kernels {

constexpr int kBisectionLanes = 8;

struct TridiagonalOps {
  // Rows and columns from `begin` to n: A −= v wᵀ + w vᵀ, then p = A x. v, w and x are 0 before their own first index.
  void (*update_and_multiply)(double* p, double* a, int64_t stride, int64_t begin, int64_t n, const double* v,
                              const double* w, const double* x);
  // X ← X (I − τ v vᵀ) for `rows` rows of X; v is 0 before `begin`.
  void (*reflect_rows)(double* x, int64_t rows, int64_t stride, const double* v, double tau, int64_t begin);
  // at[l]: the eigenvalue of the tridiagonal matrix with diagonal d and squared sub-diagonal e2 below which wanted[l]
  // others lie, for kBisectionLanes at once, to rounding; all of them lie in [low, high], `norm` is that of the matrix.
  void (*bisect)(double* at, const int64_t* wanted, const double* d, const double* e2, int64_t n, double low,
                 double high, double norm);
};

const TridiagonalOps& tridiagonal_ops(Isa isa);

}  // namespace pal::kernels
