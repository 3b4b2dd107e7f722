// block_terms: a graph made of blocks, G = M B Mᵀ, at a cost of O(rows · D) whatever the number of implied pairs.
//
// Shapes: z (B, D); row_block (B) block of each row, −1 for none; blocks P. Sums and means are (P, D) in fp64, so that
//         ranks can all-reduce them: a block may have rows anywhere in the global batch.
// Order:  identical bits from run to run and for any number of threads.
// Async:  the CUDA twin works on device pointers, value included. It cannot throw for a block that does not exist:
//         only the debug build (PAL_SYNC_DEBUG) checks, and stops the kernel.
#pragma once

#include "kernels/base/cuda.h"
#include "kernels/base/view.h"

namespace pal::kernels {

namespace cpu {

// sums = MᵀZ.
template <class T>
void block_sums(MatrixView<double> sums, MatrixView<const T> z, Span<const int32_t> row_block, Scratch scratch,
                Cpu cpu);
int64_t block_sums_scratch_bytes(int64_t rows, int64_t blocks, int64_t dims);

// out = B · sums for a symmetric table B (P, P).
void block_table(MatrixView<double> out, MatrixView<const double> table, MatrixView<const double> sums, Cpu cpu);

// The pairs between blocks of a symmetric table B, for blocks of n_c members in the whole graph. With what this writes,
// block_differences and then block_rows of `between` (Into::add) give the rows Σ_j G_ij (z_i − z_j), G = M B Mᵀ:
//   pair_weight_c = Σ_d B_cd n_d     between_c = Σ_d B_cd n_d (mean_c − mean_d)     by differences, as they cancel
//   value = Σ_cd B_cd n_c n_d ‖mean_c − mean_d‖²     (with block_differences' over all ranks: Σ_ij G_ij ‖z_i − z_j‖²)
// between (P, D), pair_weight (P); table (P, P); means (P, D); members (P) = n_c.
void block_between(MatrixView<double> between, Span<double> pair_weight, double* value, MatrixView<const double> table,
                   MatrixView<const double> means, Span<const double> members, Scratch scratch, Cpu cpu);
int64_t block_between_scratch_bytes(int64_t blocks);

// out_i (+)= scale · per_block[row_block_i]; rows without a block get 0. With sums (or B · sums) it is a row of G Z.
template <class T>
void block_rows(MatrixView<T> out, MatrixView<const double> per_block, Span<const int32_t> row_block, double scale,
                Into into, Cpu cpu);

// The clique invariance of the blocks, centered: for a row in block c with n_c members in the graph and weight w_c
//   value = Σ_i 2 w_c n_c ‖z_i − mean_c‖²     (over all ranks: Σ_c w_c Σ_{i,j∈c} ‖z_i − z_j‖²)
//   out_i (+)= scale · w_c n_c (z_i − mean_c) (times 4: the gradient of value)
// means (P, D); pair_weight (P) = w_c · n_c, or block_between's.
template <class T>
void block_differences(MatrixView<T> out, double* value, MatrixView<const T> z, MatrixView<const double> means,
                       Span<const double> pair_weight, Span<const int32_t> row_block, double scale, Into into,
                       Scratch scratch, Cpu cpu);
int64_t block_differences_scratch_bytes(int64_t rows);

}  // namespace cpu

// T = float, bf16. Sums are fp64, as on the CPU; a row's differences are taken in fp64 and squared in fp32 by eights.
namespace cuda {

template <class T>
void block_sums(MatrixView<double> sums, MatrixView<const T> z, Span<const int32_t> row_block, Scratch scratch,
                cudaStream_t stream);
int64_t block_sums_scratch_bytes(int64_t rows, int64_t blocks, int64_t dims);

void block_table(MatrixView<double> out, MatrixView<const double> table, MatrixView<const double> sums,
                 cudaStream_t stream);

void block_between(MatrixView<double> between, Span<double> pair_weight, double* value, MatrixView<const double> table,
                   MatrixView<const double> means, Span<const double> members, Scratch scratch, cudaStream_t stream);
int64_t block_between_scratch_bytes(int64_t blocks, int64_t dims);

template <class T>
void block_rows(MatrixView<T> out, MatrixView<const double> per_block, Span<const int32_t> row_block, double scale,
                Into into, cudaStream_t stream);

template <class T>
void block_differences(MatrixView<T> out, double* value, MatrixView<const T> z, MatrixView<const double> means,
                       Span<const double> pair_weight, Span<const int32_t> row_block, double scale, Into into,
                       Scratch scratch, cudaStream_t stream);
int64_t block_differences_scratch_bytes(int64_t rows, int64_t dims);

}  // namespace cuda

}  // namespace pal::kernels
