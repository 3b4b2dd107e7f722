// top_eigen: the eigenvectors of the k largest eigenvalues of a dense symmetric matrix, k far below n.
//
// Householder tridiagonalization (one pass over the matrix per column), bisection for the k eigenvalues, inverse
// iteration, and the reflections back. A full decomposition spends most of its time on the n − k vectors nobody asked
// for. Iterations started from the last step's vectors lose here: where few relations are known the fifth and the sixth
// eigenvalue lie 1e-5 of the spectrum's width apart. Accuracy: that of the dense solution (top_eigen_test).
// Same input, same bits, on one instruction set.
#pragma once

#include <cstdint>
#include <vector>

#include "core/theory/matrix.h"

namespace pal::theory {

class TopEigen {
 public:
  TopEigen(int64_t n, int64_t k);  // 1 ≤ k ≤ n
  // Decomposes the symmetric (n, n) matrix; the results stay until the next call.
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
