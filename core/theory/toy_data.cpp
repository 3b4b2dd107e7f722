#include "core/theory/toy_data.h"

#include <cmath>
#include <numbers>

namespace pal::theory {
namespace {

void place_point(ToySet& set, ToyKind kind, int64_t i, double angle, double noise, Random& random) {
  double* x = set.x.row(i);
  if (kind == ToyKind::circles) {
    x[0] = (set.y[i] + 1) * std::cos(angle);
    x[1] = (set.y[i] + 1) * std::sin(angle);
  } else {
    x[set.y[i]] = 1;
  }
  for (int64_t k = 0; k < set.x.cols; ++k) x[k] += noise * random.normal();
}

ToySet empty_set(ToyKind kind, int64_t n) {
  return {Matrix(n, kind == ToyKind::circles ? 2 : kToyClasses), std::vector<int>(n)};
}

}  // namespace

ToySet toy_train(ToyKind kind, int64_t n, double noise, Random& random) {
  ToySet set = empty_set(kind, n);
  for (int64_t i = 0; i < n; ++i) {
    set.y[i] = static_cast<int>(random.below(kToyClasses));
    place_point(set, kind, i, 2 * std::numbers::pi * random.next_double(), noise, random);
  }
  return set;
}

ToySet toy_test(ToyKind kind, int64_t n, double noise, Random& random) {
  ToySet set = empty_set(kind, n);
  for (int64_t i = 0; i < n; ++i) {
    set.y[i] = static_cast<int>(kToyClasses * i / n);
    place_point(set, kind, i, 2 * std::numbers::pi * kToyClasses * static_cast<double>(i) / static_cast<double>(n),
                noise, random);
  }
  return set;
}

ToySet toy_views(const ToySet& set, int64_t views, double noise, Random& random) {
  ToySet out{Matrix(set.x.rows * views, set.x.cols), std::vector<int>(set.x.rows * views)};
  for (int64_t i = 0; i < out.x.rows; ++i) {
    out.y[i] = set.y[i / views];
    for (int64_t k = 0; k < out.x.cols; ++k) out.x(i, k) = set.x(i / views, k) + noise * random.normal();
  }
  return out;
}

Matrix one_hot(const std::vector<int>& y, int classes) {
  Matrix m(static_cast<int64_t>(y.size()), classes);
  for (size_t i = 0; i < y.size(); ++i) m(static_cast<int64_t>(i), y[i]) = 1;
  return m;
}

}  // namespace pal::theory
