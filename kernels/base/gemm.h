// gemm: matrix products of the CPU twins, by the BLAS of the process.
//
// In the program the symbols are those of libtorch_cpu's MKL; in the torch-free tests those of OpenBLAS. Its threads
// are the process's setting, not ours. Row-major; C = alpha * op(A) op(B) + beta * C.
#pragma once

#include <cstdint>

extern "C" {
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
            const float*, const int*, const float*, float*, const int*);
void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*, const int*,
            const double*, const int*, const double*, double*, const int*);
}

namespace pal::kernels {

enum class Op { none, transpose };

// m x n result, inner size k; lda, ldb, ldc are row strides in elements. Sizes must fit 32 bits (checked by callers).
inline void gemm(Op a_op, Op b_op, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                 const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  const int m_ = int(m), n_ = int(n), k_ = int(k), lda_ = int(lda), ldb_ = int(ldb), ldc_ = int(ldc);
  const char ta = a_op == Op::none ? 'N' : 'T', tb = b_op == Op::none ? 'N' : 'T';
  sgemm_(&tb, &ta, &n_, &m_, &k_, &alpha, b, &ldb_, a, &lda_, &beta, c, &ldc_);
}
inline void gemm(Op a_op, Op b_op, int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t lda,
                 const double* b, int64_t ldb, double beta, double* c, int64_t ldc) {
  const int m_ = int(m), n_ = int(n), k_ = int(k), lda_ = int(lda), ldb_ = int(ldb), ldc_ = int(ldc);
  const char ta = a_op == Op::none ? 'N' : 'T', tb = b_op == Op::none ? 'N' : 'T';
  dgemm_(&tb, &ta, &n_, &m_, &k_, &alpha, b, &ldb_, a, &lda_, &beta, c, &ldc_);
}

}  // namespace pal::kernels
