// tridiagonal_factors: LU of a shifted symmetric tridiagonal matrix, for inverse iteration.
#pragma once

#include <cstdint>
#include <vector>

namespace pal::theory {

// LU of T − shift with pivoting; pivots below `tiny` become `tiny`.
class TridiagonalFactors {
 public:
  void factorize(const double* d, const double* e, int64_t n, double shift, double tiny);
  void solve(double* x) const;  // in place, scaled so that nothing overflows

 private:
  std::vector<double> diagonal_, upper_, upper2_, lower_;
  std::vector<char> swapped_;
};

}  // namespace pal::theory
