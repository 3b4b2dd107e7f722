// graph_rows_impl: the inner loops of graph_rows over one row's partners, a table per type and instruction set.
#pragma once

#include <cstdint>

#include "kernels/base/isa.h"

namespace pal::kernels {

// One row and some of its partners.
template <class T>
struct RowPartners {
  const T* z;         // (dims)
  const T* partners;  // row j at partners + j * stride
  int64_t stride;
  const int32_t* columns;  // (count)
  const T* weights;        // (count)
  int64_t count;
  int64_t dims;
  int64_t known;  // columns that may be read: those of the next rows are prefetched
};

// Where the row goes: out (+)= scale · (row + shift · z), or partial = row + shift · z in fp64. Both null: nowhere. A
// shift is for sums only.
template <class T>
struct RowSink {
  T* out = nullptr;
  double* partial = nullptr;
  double scale = 1;
  double shift = 0;
  bool add = false;
};

// Rows are added up in T over a few partners, and these sums in fp64.
template <class T>
struct GraphRowsOps {
  // row = Σ w p_j; returns Σ w z·p_j.
  double (*sum)(const RowPartners<T>& row, const RowSink<T>& sink);
  // row = Σ w (z − p_j); returns Σ w ‖z − p_j‖².
  double (*difference)(const RowPartners<T>& row, const RowSink<T>& sink);
  // coefficients_j = w_j z·p_j, *weight = Σ w_j; returns Σ w ((z·p_j)² − ‖z‖² − ‖p_j‖²).
  double (*repulsion)(T* coefficients, double* weight, const RowPartners<T>& row);
};

template <class T>
const GraphRowsOps<T>& graph_rows_ops(Isa isa);  // float, double

}  // namespace pal::kernels
