// minimize: L-BFGS with backtracking, for small smooth problems.
#pragma once

#include <cstdint>
#include <functional>

#include "core/theory/matrix.h"

namespace pal::theory {

// Returns the value at x and writes the gradient.
using SmoothLoss = std::function<double(const Matrix& x, Matrix& gradient)>;

struct Minimum {
  Matrix x;
  double value = 0;
  double gradient = 0;  // its norm at x
  int steps = 0;
};
// Stops when the gradient's norm is below `tolerance`, or when the value no longer decreases.
Minimum minimize(const SmoothLoss& loss, const Matrix& start, double tolerance = 1e-9, int max_steps = 5000);

Matrix random_normal(int64_t rows, int64_t cols, uint64_t seed, double scale = 1);

}  // namespace pal::theory
