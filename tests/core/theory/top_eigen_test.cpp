// top_eigen: values, angles and orthogonality against the dense decomposition, also for close and equal eigenvalues.
#include <gtest/gtest.h>

#include <cmath>

#include "core/theory/matrix.h"
#include "core/theory/one_thread.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"
#include "kernels/base/tridiagonal.h"

namespace pal::theory {
namespace {

// The k largest of the dense solution, in the format of TopEigen.
EigenPairs dense_top(const Matrix& a, int64_t k) {
  const EigenPairs all = symmetric_eigen(a);
  EigenPairs top{{}, Matrix(k, a.cols)};
  for (int64_t t = 0; t < k; ++t) {
    top.values.push_back(all.values[a.rows - 1 - t]);
    std::copy(all.vectors.row(a.rows - 1 - t), all.vectors.row(a.rows - 1 - t) + a.cols, top.vectors.row(t));
  }
  return top;
}

Matrix random_symmetric(int64_t n, uint64_t seed) {
  Random random(seed, Purpose::bench);
  Matrix a(n, n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) a(i, j) = a(j, i) = random.normal();
  }
  return a;
}

void expect_top(const Matrix& a, int64_t k, double angle) {
  const OneThread scope;
  TopEigen ours(a.rows, k);
  ours.solve(a);
  const EigenPairs dense = dense_top(a, k);
  const double norm = std::sqrt(squared_norm(a)) + 1e-80;
  for (int64_t t = 0; t < k; ++t)
    EXPECT_NEAR(ours.values()[t], dense.values[t], 1e-14 * norm) << "n " << a.rows << ", value " << t;
  EXPECT_LT(largest_difference(product_right_t(ours.vectors(), ours.vectors()), identity(k)), 1e-12);
  Matrix residual = product(ours.vectors(), a);
  for (int64_t t = 0; t < k; ++t) {
    for (int64_t i = 0; i < a.cols; ++i) residual(t, i) -= ours.values()[t] * ours.vectors()(t, i);
  }
  EXPECT_LT(std::sqrt(squared_norm(residual)), 1e-13 * norm * static_cast<double>(k));
  EXPECT_LT(largest_angle_sine(ours.vectors(), dense.vectors), angle);
}

TEST(TopEigen, EqualsTheDenseSolution) {
  for (int64_t n : {1, 2, 3, 7, 8, 9, 40, 151}) {
    SCOPED_TRACE(n);
    expect_top(random_symmetric(n, static_cast<uint64_t>(n)), std::min<int64_t>(n, 5), 1e-11);
  }
  expect_top(random_symmetric(30, 3), 30, 1e-11);  // all of them: more than one group of bisections
}

// 1 − λ/κ of a kernel: many eigenvalues within 1e-5 of each other, as in the experiments before the first question.
TEST(TopEigen, EqualsTheDenseSolutionWhereEigenvaluesAreClose) {
  const OneThread scope;
  const int64_t n = 150;
  Matrix k(n, n);
  Random random(5, Purpose::bench);
  std::vector<double> x, y;
  for (int64_t i = 0; i < n; ++i) {
    x.push_back(2 * random.normal());
    y.push_back(2 * random.normal());
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) k(i, j) = std::exp(-std::hypot(x[i] - x[j], y[i] - y[j]) / 0.2);
  }
  const Matrix t = combine(1, identity(n), -1e-3, symmetric_pseudo_inverse(k, 1e-5 / n));
  expect_top(t, 5, 1e-8);
}

TEST(TopEigen, KeepsVectorsOfEqualEigenvaluesApart) {
  expect_top(identity(20), 20, 1e-12);
  expect_top(Matrix(6, 6), 6, 1e-12);  // zero
  const int64_t n = 60;                // four equal cliques: eigenvalue 15 four times, then 0
  Matrix g(n, n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) g(i, j) = i % 4 == j % 4;
  }
  expect_top(g, 4, 1e-12);
}

TEST(TopEigen, RefusesMoreThanThereAreAndWhatIsNotFinite) {
  EXPECT_THROW(TopEigen(4, 5), Error);
  EXPECT_THROW(TopEigen(4, 0), Error);
  Matrix a = identity(4);
  a(2, 2) = NAN;
  EXPECT_THROW(TopEigen(4, 2).solve(a), Error);
}

TEST(TopEigen, EveryInstructionSetGivesTheSameBisection) {
  const double d[3] = {2, 1, -1}, e2[3] = {0.25, 4, 0};
  const int64_t wanted[kernels::kBisectionLanes] = {2, 1, 0, 2, 1, 0, 2, 1};
  double first[kernels::kBisectionLanes], other[kernels::kBisectionLanes];
  kernels::tridiagonal_ops(kernels::Isa::scalar).bisect(first, wanted, d, e2, 3, -5, 5, 5);
  for (kernels::Isa isa : {kernels::Isa::avx2, kernels::Isa::avx512}) {
    if (!kernels::isa_supported(isa)) continue;
    kernels::tridiagonal_ops(isa).bisect(other, wanted, d, e2, 3, -5, 5, 5);
    for (int l = 0; l < kernels::kBisectionLanes; ++l) EXPECT_NEAR(first[l], other[l], 1e-14);
  }
  EXPECT_NEAR(first[0] + first[1] + first[2], 2, 1e-13);  // the trace
}

}  // namespace
}  // namespace pal::theory
