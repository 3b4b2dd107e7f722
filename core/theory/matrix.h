// matrix: dense row-major matrices in double, with the products and the eigendecomposition of LibTorch's LAPACK.
//
// Order: memory is aligned to 64 bytes. On aligned memory and one thread, MKL gives the same bits on every run.
// Thread: products and decompositions use at::set_num_threads threads, or one inside a parallel loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace pal::theory {

template <class T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* p, size_t) { ::operator delete (p, std::align_val_t{64}); }
  bool operator==(const AlignedAllocator&) const { return true; }
};
using AlignedDoubles = std::vector<double, AlignedAllocator<double>>;

struct Matrix {
  int64_t rows = 0, cols = 0;
  AlignedDoubles data;

  Matrix() = default;
  Matrix(int64_t rows, int64_t cols, double value = 0)
      : rows(rows), cols(cols), data(static_cast<size_t>(rows * cols), value) {}
  double* row(int64_t i) { return data.data() + i * cols; }
  const double* row(int64_t i) const { return data.data() + i * cols; }
  double& operator()(int64_t i, int64_t j) { return data[static_cast<size_t>(i * cols + j)]; }
  double operator()(int64_t i, int64_t j) const { return data[static_cast<size_t>(i * cols + j)]; }
};

Matrix identity(int64_t n);
Matrix transpose(const Matrix& a);
Matrix product(const Matrix& a, const Matrix& b);                      // A B
Matrix product_left_t(const Matrix& a, const Matrix& b);               // Aᵀ B
Matrix product_right_t(const Matrix& a, const Matrix& b);              // A Bᵀ
Matrix combine(double s, const Matrix& a, double t, const Matrix& b);  // s A + t B
double squared_norm(const Matrix& a);                                  // ‖A‖²_F
double trace_product(const Matrix& a, const Matrix& b);                // Tr AᵀB
double largest_difference(const Matrix& a, const Matrix& b);           // max |a − b|

// A = Σ values[i] · row_i ᵀ row_i over the rows of `vectors`; values ascend. A must be symmetric.
struct EigenPairs {
  std::vector<double> values;
  Matrix vectors;
};
EigenPairs symmetric_eigen(const Matrix& a);
// The pseudo-inverse of a symmetric matrix: eigenvalues with |value| ≤ cutoff count as 0. `rank` is the number of the
// others.
Matrix symmetric_pseudo_inverse(const Matrix& a, double cutoff, int64_t* rank = nullptr);
// The minimum-norm solution X of A X = B for small symmetric A ≥ 0; eigenvalues below relative_cutoff × the largest
// count as 0.
Matrix solve_normal(const Matrix& a, const Matrix& b, double relative_cutoff = 1e-12);

// The sine of the largest principal angle between the row spaces of A and B (full row rank, equal numbers of rows).
double largest_angle_sine(const Matrix& a, const Matrix& b);

// top_eigen: the eigenvectors of the k largest eigenvalues of a dense symmetric matrix, k far below n.
//
// Math: Householder tridiagonalization (one pass over the matrix per column), bisection for the k eigenvalues, inverse
//   iteration, and back-transformation. A full decomposition spends most of its time on the other n − k vectors.
//   Subspace iteration from the last step's vectors is slower here: with few known relations the fifth and sixth
//   eigenvalues are only 1e-5 of the spectrum's width apart. Accuracy: that of the dense solution (top_eigen_test).
// Order: on one instruction set the same input gives the same bits.
class TopEigen {
 public:
  TopEigen(int64_t n, int64_t k);  // 1 ≤ k ≤ n
  // Decomposes the symmetric (n, n) matrix; the results are valid until the next call.
  void solve(const Matrix& a);
  const std::vector<double>& values() const { return values_; }  // (k) descending
  const Matrix& vectors() const { return vectors_; }             // (k, n) one eigenvector per row, orthonormal

 private:
  void tridiagonalize(const Matrix& a);
  void bisect();
  void inverse_iterate();
  void reflect_back();

  int64_t n_, k_, stride_;
  AlignedDoubles a_, reflectors_;    // (n, stride) working copy; reflector j in row j
  std::vector<double> tau_, d_, e_;  // scales of the reflectors; diagonal and sub-diagonal
  AlignedDoubles v_, w_, p_;         // (stride)
  double norm_ = 0;                  // of the tridiagonal matrix
  std::vector<double> values_;
  Matrix tridiagonal_vectors_;  // (k, stride)
  Matrix vectors_;
};

}  // namespace pal::theory
