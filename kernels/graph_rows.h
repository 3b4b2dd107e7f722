// graph_rows: products of a sparse graph with the rows of Z, row by row.
//
// Shapes: z (B, D) this rank's rows, the rows of S; partners (M, D) which S's columns index (z, or gathered rows).
// Math:   sum         out_i = scale · Σ_j S_ij p_j                     value = Σ_ij S_ij z_iᵀp_j
//         difference  out_i = scale · Σ_j S_ij (z_i − p_j)             value = Σ_ij S_ij ‖z_i − p_j‖²
//         repulsion   out_i = scale · Σ_j S_ij ((z_iᵀp_j) p_j − z_i)   value = Σ_ij S_ij ((z_iᵀp_j)² − ‖z_i‖² − ‖p_j‖²)
//         The gradient of `value` in z_i, for a symmetric S with p = z, is: sum 2·, difference 4·, repulsion 4· the
//         row. Into::add adds to out instead of overwriting it. out must not share memory with z or partners.
// Order:  a row has one owner and a fixed order of its partners; identical bits from run to run and for any threads.
//         On the CPU a row and its value are summed in T over at most 16 partners, and these sums in fp64.
// Async:  the CUDA twin works on device pointers, value included. It cannot throw for a bad index: only the debug build
//         (PAL_SYNC_DEBUG) checks, and stops the kernel. Rows and their sums are fp32, whatever z is stored in.
#pragma once

#include "kernels/base/cuda.h"
#include "kernels/base/view.h"

namespace pal::kernels {

enum class RowForm { sum, difference, repulsion };

struct GraphRowsOptions {
  RowForm form = RowForm::difference;
  double scale = 1.0;
  Into into = Into::overwrite;
};

namespace cpu {
template <class T>
int64_t graph_rows_scratch_bytes(int64_t rows, int64_t nnz, int64_t dims);
// out may be empty (value only); value may be null (rows only).
template <class T>
void graph_rows(MatrixView<T> out, double* value, MatrixView<const T> z, MatrixView<const T> partners,
                const CsrView<T>& s, const GraphRowsOptions& options, Scratch scratch, Cpu cpu);
}  // namespace cpu

// T = float, bf16. The length of s.columns may be what there is room for; the entries used end at offsets[rows].
namespace cuda {
template <class T>
int64_t graph_rows_scratch_bytes(int64_t rows, int64_t nnz, int64_t dims);
template <class T>
void graph_rows(MatrixView<T> out, double* value, MatrixView<const T> z, MatrixView<const T> partners,
                const CsrView<float>& s, const GraphRowsOptions& options, Scratch scratch, cudaStream_t stream);
}  // namespace cuda

}  // namespace pal::kernels
