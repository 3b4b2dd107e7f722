#include "core/theory/minimize.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "kernels/base/philox.h"

namespace pal::theory {

Minimum minimize(const SmoothLoss& loss, const Matrix& start, double tolerance, int max_steps) {
  constexpr size_t kMemory = 20;
  Minimum best{start, 0, 0, 0};
  Matrix gradient(start.rows, start.cols);
  best.value = loss(best.x, gradient);
  struct Pair {
    Matrix s, y;
    double rho;
  };
  std::deque<Pair> pairs;
  for (; best.steps < max_steps; ++best.steps) {
    best.gradient = std::sqrt(squared_norm(gradient));
    if (best.gradient < tolerance) break;
    Matrix direction = combine(-1, gradient, 0, gradient);
    std::vector<double> alphas(pairs.size());
    for (size_t k = pairs.size(); k-- > 0;) {
      alphas[k] = pairs[k].rho * trace_product(pairs[k].s, direction);
      direction = combine(1, direction, -alphas[k], pairs[k].y);
    }
    if (!pairs.empty()) {
      const double scale = 1 / (pairs.back().rho * squared_norm(pairs.back().y));
      direction = combine(scale, direction, 0, direction);
    }
    for (size_t k = 0; k < pairs.size(); ++k) {
      direction = combine(1, direction, alphas[k] - pairs[k].rho * trace_product(pairs[k].y, direction), pairs[k].s);
    }
    double slope = trace_product(direction, gradient);
    if (slope >= 0) {  // rounding errors in the memory: restart
      pairs.clear();
      direction = combine(-1, gradient, 0, gradient);
      slope = -squared_norm(gradient);
    }
    double length = pairs.empty() ? std::min(1.0, 1 / best.gradient) : 1;
    Matrix next, next_gradient(start.rows, start.cols);
    double value = 0;
    bool found = false;
    for (int halving = 0; halving < 60 && !found; ++halving, length /= 2) {
      next = combine(1, best.x, length, direction);
      value = loss(next, next_gradient);
      found = value <= best.value + 1e-4 * length * slope && std::isfinite(value);
    }
    if (!found) break;
    Pair pair{combine(1, next, -1, best.x), combine(1, next_gradient, -1, gradient), 0};
    const double curvature = trace_product(pair.s, pair.y);
    if (curvature > 1e-300) {
      pair.rho = 1 / curvature;
      pairs.push_back(std::move(pair));
      if (pairs.size() > kMemory) pairs.pop_front();
    }
    best.x = next;
    best.value = value;
    gradient = next_gradient;
  }
  best.gradient = std::sqrt(squared_norm(gradient));
  return best;
}

Matrix random_normal(int64_t rows, int64_t cols, uint64_t seed, double scale) {
  Random random(seed, Purpose::theory, 100);
  Matrix m(rows, cols);
  for (double& v : m.data) v = scale * random.normal();
  return m;
}

}  // namespace pal::theory
