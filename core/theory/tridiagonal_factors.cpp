#include "core/theory/tridiagonal_factors.h"

#include <cmath>
#include <utility>

namespace pal::theory {

void TridiagonalFactors::factorize(const double* d, const double* e, int64_t n, double shift, double tiny) {
  const auto size = static_cast<size_t>(n);
  diagonal_.resize(size);
  upper_.assign(size, 0);
  upper2_.assign(size, 0);
  lower_.assign(size, 0);
  swapped_.assign(size, 0);
  double pivot = d[0] - shift, right = n > 1 ? e[0] : 0;
  for (int64_t i = 0; i + 1 < n; ++i) {
    const double below = e[i], next = d[i + 1] - shift, next_right = i + 2 < n ? e[i + 1] : 0;
    if (std::abs(pivot) >= std::abs(below)) {
      if (std::abs(pivot) < tiny) pivot = pivot < 0 ? -tiny : tiny;
      const double m = below / pivot;
      diagonal_[i] = pivot;
      upper_[i] = right;
      lower_[i] = m;
      pivot = next - m * right;
      right = next_right;
    } else {  // the rows change places
      const double m = pivot / below;
      swapped_[i] = 1;
      diagonal_[i] = below;
      upper_[i] = next;
      upper2_[i] = next_right;
      lower_[i] = m;
      pivot = right - m * next;
      right = -m * next_right;
    }
  }
  diagonal_[size - 1] = std::abs(pivot) < tiny ? (pivot < 0 ? -tiny : tiny) : pivot;
}

void TridiagonalFactors::solve(double* x) const {
  const auto n = static_cast<int64_t>(diagonal_.size());
  for (int64_t i = 0; i + 1 < n; ++i) {
    if (swapped_[i]) std::swap(x[i], x[i + 1]);
    x[i + 1] -= lower_[i] * x[i];
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    double value = x[i];
    if (i + 1 < n) value -= upper_[i] * x[i + 1];
    if (i + 2 < n) value -= upper2_[i] * x[i + 2];
    x[i] = value / diagonal_[i];
  }
}

}  // namespace pal::theory
