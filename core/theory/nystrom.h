// nystrom: the closed form on many points: K through m landmarks, the graph through its blocks, nothing of size N².
//
// Math:  K ≈ C W⁺ Cᵀ with C = k(X, L), W = k(L, L). In the basis Q of the range of C the operator G − λK⁺ is the (m, m) matrix
//        QᵀGQ − λΣ⁻², Σ² the eigenvalues of K there; its top eigenvectors give the representation k(x, L) A.
//        G: 1 on the diagonal, ±1 between points whose label is known, 0 elsewhere: CᵀGC = CᵀC − C_kᵀC_k + P (2I − 11ᵀ) Pᵀ,
//        P = C_kᵀY_k the sums over a class, k the known points.
// Memory: m² and one tile of rows of C. Time: N m² once, and (known points) m² + m³ per graph.
// With every point a landmark it is the dense solution (nystrom_test).
#pragma once

#include <cstdint>
#include <vector>

#include "core/theory/kernel_method.h"

namespace pal::theory {

struct NystromOptions {
  KernelOptions kernel;
  int64_t landmarks = 1000;
  int64_t tile = 1024;             // rows of C at a time
  double relative_cutoff = 1e-12;  // eigenvalues of W and of K in the basis, against the largest
};

class NystromMethod {
 public:
  // The landmarks are the first points: give the points in random order.
  NystromMethod(const ToySet& train, const NystromOptions& options);
  // The coefficients A (m, width) for this set of known labels; eigenvalues descending.
  Matrix fit(const std::vector<char>& known, std::vector<double>* eigenvalues = nullptr) const;
  Matrix represent(const Matrix& points, const Matrix& coefficients) const;  // (n, width)

 private:
  Matrix kernel_rows(const std::vector<int64_t>& rows) const;

  const ToySet train_;
  NystromOptions options_;
  Matrix landmarks_;                   // (m, d)
  Matrix square_;                      // CᵀC (m, m)
  Matrix basis_;                       // R V Σ⁻¹ (m, r): C · basis has orthonormal columns
  std::vector<double> kernel_values_;  // Σ² (r)
};

}  // namespace pal::theory
