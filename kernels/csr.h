// csr: index pairs (I, J, w) to one symmetric, merged CSR matrix with its degrees.
//
// Math:   S_ij = Σ w over the given pairs (i,j) and (j,i). A pair i=j counts once. Repeated pairs add up.
// Order:  columns ascend inside a row; repeated pairs are added in the order given, degrees in the order of columns,
//         both in fp64 and rounded once: S_ij and S_ji have the same bits, and so have CPU and CUDA.
// Async:  the CUDA twin works on device pointers, nnz included: nothing is copied to the host. It cannot throw for a
//         bad pair; it skips the pair and reports it in *nnz (kCsrBadIndex, kCsrBadWeight).
#pragma once

#include "kernels/base/cuda.h"
#include "kernels/base/view.h"

namespace pal::kernels {

template <class T>
struct PairsView {
  Span<const int32_t> i;  // (pairs)
  Span<const int32_t> j;  // (pairs)
  Span<const T> w;        // (pairs), or empty: every weight is 1
};

// The output. columns and weights have room for csr_capacity(pairs) entries; *nnz is the number used.
template <class T>
struct CsrOut {
  Span<int64_t> offsets;  // (rows + 1)
  Span<int32_t> columns;
  Span<T> weights;
  Span<T> degrees;  // (rows) Σ_j |S_ij|
  int64_t* nnz = nullptr;
};

inline int64_t csr_capacity(int64_t pairs) { return 2 * pairs; }

// *nnz of the CUDA twin when an index was outside [0, rows), or a weight was not finite.
constexpr int64_t kCsrBadIndex = -1;
constexpr int64_t kCsrBadWeight = -2;

namespace cpu {
template <class T>
int64_t csr_scratch_bytes(int64_t rows, int64_t pairs);
template <class T>
void csr(const CsrOut<T>& out, const PairsView<T>& pairs, int64_t rows, Scratch scratch, Cpu cpu);
}  // namespace cpu

// T = float; fewer than 2^31 pairs and rows.
namespace cuda {
template <class T>
int64_t csr_scratch_bytes(int64_t rows, int64_t pairs);
template <class T>
void csr(const CsrOut<T>& out, const PairsView<T>& pairs, int64_t rows, Scratch scratch, cudaStream_t stream);
}  // namespace cuda

}  // namespace pal::kernels
