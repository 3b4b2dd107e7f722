#include "core/theory/matrix.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"

// MKL functions in libtorch_cpu, by their Fortran names.
extern "C" {
void dgemm_(const char* ta, const char* tb, const int* m, const int* n, const int* k, const double* alpha,
            const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
            const int* ldc);
void dsyevd_(const char* job, const char* uplo, const int* n, double* a, const int* lda, double* w, double* work,
             const int* lwork, int* iwork, const int* liwork, int* info);
}

namespace pal::theory {
namespace {

// C = op(A) op(B), all row-major. Fortran reads every matrix transposed, so the call computes Cᵀ = op(B)ᵀ op(A)ᵀ.
Matrix gemm(const Matrix& a, char ta, const Matrix& b, char tb) {
  const int m = static_cast<int>(ta == 'N' ? a.rows : a.cols), k = static_cast<int>(ta == 'N' ? a.cols : a.rows);
  const int n = static_cast<int>(tb == 'N' ? b.cols : b.rows), kb = static_cast<int>(tb == 'N' ? b.rows : b.cols);
  PAL_ASSERT(k == kb, "the inner sizes of a product are equal");
  Matrix c(m, n);
  if (m == 0 || n == 0 || k == 0) return c;
  const int lda = static_cast<int>(a.cols), ldb = static_cast<int>(b.cols);
  const double one = 1, zero = 0;
  dgemm_(&tb, &ta, &n, &m, &k, &one, b.data.data(), &ldb, a.data.data(), &lda, &zero, c.data.data(), &n);
  return c;
}

}  // namespace

Matrix identity(int64_t n) {
  Matrix m(n, n);
  for (int64_t i = 0; i < n; ++i) m(i, i) = 1;
  return m;
}

Matrix transpose(const Matrix& a) {
  Matrix t(a.cols, a.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.cols; ++j) t(j, i) = a(i, j);
  }
  return t;
}

Matrix product(const Matrix& a, const Matrix& b) { return gemm(a, 'N', b, 'N'); }
Matrix product_left_t(const Matrix& a, const Matrix& b) { return gemm(a, 'T', b, 'N'); }
Matrix product_right_t(const Matrix& a, const Matrix& b) { return gemm(a, 'N', b, 'T'); }

Matrix combine(double s, const Matrix& a, double t, const Matrix& b) {
  PAL_ASSERT(a.rows == b.rows && a.cols == b.cols, "the summands have one shape");
  Matrix c(a.rows, a.cols);
  for (size_t i = 0; i < c.data.size(); ++i) c.data[i] = s * a.data[i] + t * b.data[i];
  return c;
}

double squared_norm(const Matrix& a) { return trace_product(a, a); }

double trace_product(const Matrix& a, const Matrix& b) {
  PAL_ASSERT(a.rows == b.rows && a.cols == b.cols, "the factors of a trace have one shape");
  double sum = 0;
  for (size_t i = 0; i < a.data.size(); ++i) sum += a.data[i] * b.data[i];
  return sum;
}

double largest_difference(const Matrix& a, const Matrix& b) {
  PAL_ASSERT(a.rows == b.rows && a.cols == b.cols, "what is compared has one shape");
  double largest = 0;
  for (size_t i = 0; i < a.data.size(); ++i) largest = std::max(largest, std::abs(a.data[i] - b.data[i]));
  return largest;
}

EigenPairs symmetric_eigen(const Matrix& a) {
  PAL_ASSERT(a.rows == a.cols, "an eigendecomposition takes a square matrix");
  const int n = static_cast<int>(a.rows);
  EigenPairs pairs{std::vector<double>(static_cast<size_t>(n)), a};
  if (n == 0) return pairs;
  int info = 0, lwork = -1, liwork = -1, liwork_best = 0;
  double lwork_best = 0;
  dsyevd_("V", "U", &n, pairs.vectors.data.data(), &n, pairs.values.data(), &lwork_best, &lwork, &liwork_best, &liwork,
          &info);
  lwork = static_cast<int>(lwork_best);
  liwork = liwork_best;
  AlignedDoubles work(static_cast<size_t>(lwork));
  std::vector<int> iwork(static_cast<size_t>(liwork));
  dsyevd_("V", "U", &n, pairs.vectors.data.data(), &n, pairs.values.data(), work.data(), &lwork, iwork.data(), &liwork,
          &info);
  PAL_CHECK_CODE(Exit::numerics, info == 0, "the eigendecomposition did not converge; LAPACK's info", info,
                 "look for infinite or huge entries");
  return pairs;
}

Matrix symmetric_pseudo_inverse(const Matrix& a, double cutoff, int64_t* rank) {
  const EigenPairs pairs = symmetric_eigen(a);
  Matrix scaled = pairs.vectors;
  int64_t kept = 0;
  for (int64_t i = 0; i < a.rows; ++i) {
    const bool keep = std::abs(pairs.values[i]) > cutoff;
    kept += keep;
    for (int64_t j = 0; j < a.cols; ++j) scaled(i, j) *= keep ? 1 / pairs.values[i] : 0;
  }
  if (rank != nullptr) *rank = kept;
  return product_left_t(pairs.vectors, scaled);
}

// Cyclic Jacobi: accurate enough for the few columns of a probe, and cheaper than LAPACK at that size.
Matrix solve_normal(const Matrix& a, const Matrix& b, double relative_cutoff) {
  const int64_t n = a.rows;
  Matrix d = a, v = identity(n);
  const double scale = std::sqrt(squared_norm(a));
  for (int sweep = 0; sweep < 30; ++sweep) {
    double off = 0;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        off = std::max(off, std::abs(d(p, q)));
        if (std::abs(d(p, q)) <= 1e-300) continue;
        const double theta = (d(q, q) - d(p, p)) / (2 * d(p, q));
        const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        for (int64_t k = 0; k < n; ++k) {
          const double x = d(k, p), y = d(k, q);
          d(k, p) = c * x - s * y;
          d(k, q) = s * x + c * y;
        }
        for (int64_t k = 0; k < n; ++k) {
          const double x = d(p, k), y = d(q, k);
          d(p, k) = c * x - s * y;
          d(q, k) = s * x + c * y;
          const double u = v(k, p), w = v(k, q);
          v(k, p) = c * u - s * w;
          v(k, q) = s * u + c * w;
        }
      }
    }
    if (off <= 1e-17 * scale) break;
  }
  double top = 0;
  for (int64_t i = 0; i < n; ++i) top = std::max(top, d(i, i));
  Matrix x(n, b.cols);
  for (int64_t i = 0; i < n; ++i) {
    if (!(d(i, i) > relative_cutoff * top)) continue;
    for (int64_t c = 0; c < b.cols; ++c) {
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += v(k, i) * b(k, c);
      for (int64_t k = 0; k < n; ++k) x(k, c) += v(k, i) * sum / d(i, i);
    }
  }
  return x;
}

double largest_angle_sine(const Matrix& a, const Matrix& b) {
  PAL_ASSERT(a.rows == b.rows && a.cols == b.cols, "angles are taken between spaces of one dimension");
  // Orthonormal bases Qa, Qb; the sine is the largest singular value of Qb − (Qb Qaᵀ) Qa.
  const auto basis = [](const Matrix& m) {
    Matrix q = m;
    for (int64_t i = 0; i < q.rows; ++i) {
      for (int pass = 0; pass < 2; ++pass) {
        for (int64_t j = 0; j < i; ++j) {
          double dot = 0;
          for (int64_t k = 0; k < q.cols; ++k) dot += q(i, k) * q(j, k);
          for (int64_t k = 0; k < q.cols; ++k) q(i, k) -= dot * q(j, k);
        }
      }
      double norm = 0;
      for (int64_t k = 0; k < q.cols; ++k) norm += q(i, k) * q(i, k);
      for (int64_t k = 0; k < q.cols; ++k) q(i, k) /= std::sqrt(norm);
    }
    return q;
  };
  const Matrix qa = basis(a), qb = basis(b);
  const Matrix rest = combine(1, qb, -1, product(product_right_t(qb, qa), qa));
  const EigenPairs pairs = symmetric_eigen(product_right_t(rest, rest));
  return std::sqrt(std::max(0.0, pairs.values.empty() ? 0 : pairs.values.back()));
}

}  // namespace pal::theory
