// row_logsumexp: log-sum-exp of similarity rows, and the gradient of a row's share in a softmax loss; no n×N memory.
//
// Shapes: rows (n, D) this rank's rows; columns (N, D) what they are compared with (the gathered rows, or a support);
//         self (n) the column that is row i itself, −1: none; empty: none for any row; lse and degrees (n), (N).
// Math:   s_ij = rows_iᵀ columns_j / τ            lse_i = log Σ_{j≠self_i} e^{s_ij}, −∞ when no column is left
//         gradient  out_i = scale/τ · Σ_{j≠self_i} (d_i e^{s_ij − lse_i} + d'_j e^{s_ij − lse'_j}) columns_j
//         with d, lse of the own rows and d', lse' of the columns. When the rows are some of the columns, that is the
//         gradient of scale · Σ_j d'_j lse'_j in row i. Columns without terms (empty) are constants: only d_i remains.
//         Nothing is normalized here. Into::add adds to out. out must not share memory with an input.
// Order:  a row's bits depend on its own values and on the columns in their order, not on the other rows: splitting the
//         rows over ranks changes nothing. Identical bits from run to run and for any threads.
//         Products and exponentials, and the gradient's sum over columns, are in T; the sum of a lse is fp64.
// A NaN in a row makes that row's result NaN; a NaN in a column makes every row's result NaN.
// Async:  the CUDA twin works on device pointers, lse, degrees and self too.
#pragma once

#include "kernels/base/cuda.h"
#include "kernels/base/view.h"

namespace pal::kernels {

struct RowLogSumExpOptions {
  double temperature = 0.1;  // τ > 0
  double scale = 1.0;        // of the gradient
  Into into = Into::overwrite;
};

// The inputs of a gradient per row, or per column. Both empty: no such terms.
struct LogSumExpTerms {
  Span<const double> lse;
  Span<const double> degrees;  // the weight of its lse in the loss
};

namespace cpu {
template <class T>
int64_t row_logsumexp_scratch_bytes(int64_t rows, int64_t columns, int64_t dims);
template <class T>
void row_logsumexp(Span<double> lse, MatrixView<const T> rows, MatrixView<const T> columns, Span<const int64_t> self,
                   const RowLogSumExpOptions& options, Scratch scratch, Cpu cpu);

template <class T>
int64_t row_logsumexp_gradient_scratch_bytes(int64_t rows, int64_t columns, int64_t dims);
template <class T>
void row_logsumexp_gradient(MatrixView<T> out, MatrixView<const T> rows, MatrixView<const T> columns,
                            Span<const int64_t> self, const LogSumExpTerms& row_terms,
                            const LogSumExpTerms& column_terms, const RowLogSumExpOptions& options, Scratch scratch,
                            Cpu cpu);
}  // namespace cpu

// T = float, bf16; products and exponentials in fp32. A self outside [0, N) masks nothing.
namespace cuda {
template <class T>
int64_t row_logsumexp_scratch_bytes(int64_t rows, int64_t columns, int64_t dims);
template <class T>
void row_logsumexp(Span<double> lse, MatrixView<const T> rows, MatrixView<const T> columns, Span<const int64_t> self,
                   const RowLogSumExpOptions& options, Scratch scratch, cudaStream_t stream);

template <class T>
int64_t row_logsumexp_gradient_scratch_bytes(int64_t rows, int64_t columns, int64_t dims);
template <class T>
void row_logsumexp_gradient(MatrixView<T> out, MatrixView<const T> rows, MatrixView<const T> columns,
                            Span<const int64_t> self, const LogSumExpTerms& row_terms,
                            const LogSumExpTerms& column_terms, const RowLogSumExpOptions& options, Scratch scratch,
                            cudaStream_t stream);
}  // namespace cuda

}  // namespace pal::kernels
