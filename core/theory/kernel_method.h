// kernel_method: the closed form of VIC² on a graph over functions of a kernel.
//
// Math:  k(x, x') = exp(−‖x − x'‖/σ); T = G − λK⁺; the representation of a point is k(x, X) K⁺ V, V the eigenvectors of
//        the largest eigenvalues of T. Downstream: least squares (no intercept) from the representation of the test
//        points to their one-hot labels, argmax.
// K⁺ and its products do not depend on G and are computed once.
#pragma once

#include <cstdint>
#include <vector>

#include "core/theory/matrix.h"
#include "core/theory/toy_data.h"

namespace pal::theory {

struct KernelOptions {
  double sigma = 0.2;
  double lambda = 1e-3;
  double cutoff = 0;  // eigenvalues of K up to this count as 0
  int64_t width = 5;  // of the representation
};

// (rows of a, rows of b) exp(−‖x − x'‖/σ)
Matrix exp_kernel(const Matrix& a, const Matrix& b, double sigma);

struct Downstream {
  double error = 0;  // share of wrong classes
  double mse = 0;    // ‖prediction − one-hot‖² over test points
};

// A least-squares probe (no intercept) from these rows (n, width) to their classes, measured on them.
Downstream probe_rows(const Matrix& z, const std::vector<int>& labels);

class KernelMethod {
 public:
  KernelMethod(const ToySet& train, const ToySet& test, const KernelOptions& options);
  // The eigenvectors of T for this (n, n) graph: (width, n), one per row. Valid until the next call.
  const Matrix& fit(const Matrix& graph);
  const std::vector<double>& eigenvalues() const { return solver_.values(); }
  // Evaluates the representation given by the rows of `vectors`.
  Downstream downstream(const Matrix& vectors) const;
  // The least-squares weights (width, classes) behind `downstream`.
  Matrix test_probe(const Matrix& vectors) const;
  // The classes that a probe fitted on the known training points predicts for all of them.
  std::vector<int> predict_train(const Matrix& vectors, const std::vector<char>& known) const;
  // The representation (m, width) of points (m, d).
  Matrix represent(const Matrix& points, const Matrix& vectors) const;
  const Matrix& inverse() const { return inverse_; }  // K⁺
  const ToySet& train() const { return train_; }

 private:
  ToySet train_;
  std::vector<int> test_labels_;
  KernelOptions options_;
  Matrix inverse_, penalized_;       // K⁺; T
  bool full_rank_ = false;           // K K⁺ = I
  Matrix train_map_;                 // K K⁺ when it is not I
  Matrix test_map_;                  // k(test, X) K⁺ (n test, n)
  Matrix test_gram_, test_classes_;  // its Gram matrix (n, n); its product with the one-hot labels (n, classes)
  TopEigen solver_;
};

// nystrom: the closed form on many points, with K from m landmarks and the graph from its blocks; no N × N matrix.
//
// Math:  K ≈ C W⁺ Cᵀ with C = k(X, L), W = k(L, L). In the basis Q of the range of C the operator G − λK⁺ is the (m, m)
//        matrix QᵀGQ − λΣ⁻², Σ² the eigenvalues of K there; its top eigenvectors give the representation k(x, L) A.
//        G: 1 on the diagonal, ±1 between points whose label is known, 0 elsewhere: CᵀGC = CᵀC − C_kᵀC_k + P (2I − 11ᵀ)
//        Pᵀ, P = C_kᵀY_k the sums over a class, k the known points.
//        Memory: m² and one tile of rows of C. Time: N m² once, and (known points) m² + m³ per graph.
// With every point a landmark the result is the dense solution (nystrom_test).
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
