// moments: mean, packed centered covariance, and the variance and covariance terms with their gradient.
//
// Shapes: z (B, D) this rank's rows; packed (D (D+1) / 2) the upper triangle by rows: (0,0) (0,1) … (0,D−1) (1,1) …
// Math:   S = Σ_i (z_i − m)(z_i − m)ᵀ     C = S / (n − 1), n rows of the global batch
//         variance    hinge    Σ_k relu(γ − sqrt(C_kk + ε))      squared  Σ_k (1 − C_kk)²      norm  Σ_k C_kk²
//         covariance  Σ_{k≠l} C_kl²       Gram form: ‖Gram‖²_F − Σ_k C_kk², Gram = Z_c Z_cᵀ / (n − 1)
//         gradient    (z_i − m) A, A (D, D) symmetric: A_kl = 4 b C_kl / (n−1) off the diagonal,
//                     A_kk = −a [C_kk+ε < γ²] / (sqrt(C_kk + ε) (n−1)) for the hinge,
//                     −4 a (1 − C_kk) / (n−1) for the square, 4 a C_kk / (n−1) for the norm: a = b: that of ‖C‖²_F.
// Order:  sums over rows are accumulated in fp64 (Accumulate::fp64), so that splitting the rows over ranks changes
//         nothing after rounding; identical bits from run to run and for any number of threads.
// Right for |mean| ≫ std: the mean is taken off before anything is squared.
// Async:  the CUDA twin works on device pointers: sums, mean, packed and the terms too.
#pragma once

#include "kernels/base/cuda.h"
#include "kernels/base/view.h"

namespace pal::kernels {

enum class Variance { hinge, squared, norm };
enum class Accumulate { fp64, native };

struct MomentsOptions {
  Variance variance = Variance::hinge;
  double gamma = 1.0;
  double epsilon = 1e-4;
  double variance_weight = 1.0;    // a
  double covariance_weight = 1.0;  // b
  Accumulate accumulate = Accumulate::fp64;
};

inline int64_t packed_size(int64_t dims) { return dims * (dims + 1) / 2; }
// Position of (k, l), k <= l, in the packed triangle.
inline int64_t packed_index(int64_t k, int64_t l, int64_t dims) { return k * dims - k * (k - 1) / 2 + (l - k); }

// True: all-reduce packed covariances (rows·bytes(z) > D·bytes(c)); false: gather rows and use the Gram form.
inline bool covariance_form_wins(int64_t global_rows, int64_t dims, int64_t z_bytes, int64_t c_bytes) {
  return global_rows * z_bytes > dims * c_bytes;
}

namespace cpu {

// sums_k = Σ_i z_ik (the caller all-reduces and divides).
template <class T>
void column_sums(Span<double> sums, MatrixView<const T> z, Scratch scratch, Cpu cpu);
int64_t column_sums_scratch_bytes(int64_t rows, int64_t dims);

// packed = upper triangle of Σ_i (z_i − mean)(z_i − mean)ᵀ over this rank's rows.
template <class T>
void centered_second_moment(Span<double> packed, MatrixView<const T> z, Span<const double> mean,
                            const MomentsOptions& options, Scratch scratch, Cpu cpu);
template <class T>
int64_t centered_second_moment_scratch_bytes(int64_t rows, int64_t dims, const MomentsOptions& options);

// From the global packed S and n: the two terms (unweighted) and the weighted gradient matrix A (D, D); a empty: terms
// only.
template <class T>
void covariance_terms(MatrixView<T> a, double* variance_term, double* covariance_term, Span<const double> packed,
                      int64_t n, const MomentsOptions& options, Cpu cpu);

// out (+)= (z − mean) A.
template <class T>
void centered_product(MatrixView<T> out, MatrixView<const T> z, Span<const double> mean, MatrixView<const T> a,
                      Into into, Scratch scratch, Cpu cpu);
template <class T>
int64_t centered_product_scratch_bytes(int64_t rows, int64_t dims);

// Gram form. z_all (n, D): the rows of all ranks, gathered; mean over them; own rows are [begin, begin + out.rows).
// Terms of the whole batch (unweighted; computed alike on every rank) and the weighted gradient of the own rows.
template <class T>
void gram_terms(MatrixView<T> out, double* variance_term, double* covariance_term, MatrixView<const T> z_all,
                Span<const double> mean, int64_t begin, const MomentsOptions& options, Into into, Scratch scratch,
                Cpu cpu);
template <class T>
int64_t gram_terms_scratch_bytes(int64_t n, int64_t dims, const MomentsOptions& options);

}  // namespace cpu

// T = float, bf16. Accumulate::fp64: products and sums in fp64; native: products of 128 rows in fp32, their sums in
// fp64. The matrix A is float whatever z is stored in; the products with it are fp32.
namespace cuda {

template <class T>
void column_sums(Span<double> sums, MatrixView<const T> z, Scratch scratch, cudaStream_t stream);
int64_t column_sums_scratch_bytes(int64_t rows, int64_t dims);

template <class T>
void centered_second_moment(Span<double> packed, MatrixView<const T> z, Span<const double> mean,
                            const MomentsOptions& options, Scratch scratch, cudaStream_t stream);
template <class T>
int64_t centered_second_moment_scratch_bytes(int64_t rows, int64_t dims, const MomentsOptions& options);

void covariance_terms(MatrixView<float> a, double* variance_term, double* covariance_term, Span<const double> packed,
                      int64_t n, const MomentsOptions& options, Scratch scratch, cudaStream_t stream);
int64_t covariance_terms_scratch_bytes(int64_t dims);

template <class T>
void centered_product(MatrixView<T> out, MatrixView<const T> z, Span<const double> mean, MatrixView<const float> a,
                      Into into, cudaStream_t stream);

template <class T>
void gram_terms(MatrixView<T> out, double* variance_term, double* covariance_term, MatrixView<const T> z_all,
                Span<const double> mean, int64_t begin, const MomentsOptions& options, Into into, Scratch scratch,
                cudaStream_t stream);
template <class T>
int64_t gram_terms_scratch_bytes(int64_t n, int64_t dims, const MomentsOptions& options);

}  // namespace cuda

}  // namespace pal::kernels
