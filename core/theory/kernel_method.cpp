#include "core/theory/kernel_method.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"

namespace pal::theory {
namespace {

Downstream measure_scores(const Matrix& scores, const std::vector<int>& labels) {
  Downstream result;
  for (int64_t i = 0; i < scores.rows; ++i) {
    const double* s = scores.row(i);
    result.error += std::max_element(s, s + kToyClasses) - s != labels[i];
    for (int c = 0; c < kToyClasses; ++c) result.mse += std::pow(s[c] - (c == labels[i]), 2);
  }
  result.error /= static_cast<double>(scores.rows);
  result.mse /= static_cast<double>(scores.rows);
  return result;
}

}  // namespace

Matrix exp_kernel(const Matrix& a, const Matrix& b, double sigma) {
  Matrix k(a.rows, b.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.rows; ++j) {
      double square = 0;
      for (int64_t c = 0; c < a.cols; ++c) square += (a(i, c) - b(j, c)) * (a(i, c) - b(j, c));
      k(i, j) = std::exp(-std::sqrt(square) / sigma);
    }
  }
  return k;
}

KernelMethod::KernelMethod(const ToySet& train, const ToySet& test, const KernelOptions& options)
    : train_(train), test_labels_(test.y), options_(options), solver_(train.x.rows, options.width) {
  const Matrix kernel = exp_kernel(train.x, train.x, options.sigma);
  int64_t rank = 0;
  inverse_ = symmetric_pseudo_inverse(kernel, options.cutoff, &rank);
  full_rank_ = rank == train.x.rows;
  if (!full_rank_) train_map_ = product(kernel, inverse_);
  test_map_ = product(exp_kernel(test.x, train.x, options.sigma), inverse_);
  test_gram_ = product_left_t(test_map_, test_map_);
  test_classes_ = product_left_t(test_map_, one_hot(test.y, kToyClasses));
}

const Matrix& KernelMethod::fit(const Matrix& graph) {
  penalized_ = combine(1, graph, -options_.lambda, inverse_);
  solver_.solve(penalized_);
  return solver_.vectors();
}

Matrix KernelMethod::test_probe(const Matrix& vectors) const {
  return solve_normal(product_right_t(product(vectors, test_gram_), vectors), product(vectors, test_classes_));
}

Downstream KernelMethod::downstream(const Matrix& vectors) const {
  // test_map · (Vᵀ W): the (n, classes) product first, so that the large matrix is read once.
  return measure_scores(product(test_map_, product_left_t(vectors, test_probe(vectors))), test_labels_);
}

Downstream probe_rows(const Matrix& z, const std::vector<int>& labels) {
  return measure_scores(product(z, solve_normal(product_left_t(z, z), product_left_t(z, one_hot(labels, kToyClasses)))),
                        labels);
}

std::vector<int> KernelMethod::predict_train(const Matrix& vectors, const std::vector<char>& known) const {
  const int64_t n = vectors.cols, width = vectors.rows;
  const Matrix mapped = full_rank_ ? vectors : product(vectors, transpose(train_map_));  // (width, n)
  Matrix gram(width, width), target(width, kToyClasses);
  for (int64_t i = 0; i < n; ++i) {
    if (!known[i]) continue;
    for (int64_t a = 0; a < width; ++a) {
      for (int64_t b = 0; b < width; ++b) gram(a, b) += mapped(a, i) * mapped(b, i);
      target(a, train_.y[i]) += mapped(a, i);
    }
  }
  const Matrix weights = solve_normal(gram, target);  // with fewer points than features, the minimum-norm solution
  std::vector<int> classes(n);
  for (int64_t i = 0; i < n; ++i) {
    double best = -INFINITY;
    for (int c = 0; c < kToyClasses; ++c) {
      double score = 0;
      for (int64_t a = 0; a < width; ++a) score += mapped(a, i) * weights(a, c);
      if (score > best) best = score, classes[i] = c;
    }
  }
  return classes;
}

Matrix KernelMethod::represent(const Matrix& points, const Matrix& vectors) const {
  return product_right_t(product(exp_kernel(points, train_.x, options_.sigma), inverse_), vectors);
}

}  // namespace pal::theory
