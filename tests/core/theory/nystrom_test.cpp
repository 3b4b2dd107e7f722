// nystrom: the dense solution with every point a landmark, nearly its error with fewer; tiles have no effect.
#include <gtest/gtest.h>

#include <cmath>

#include "core/theory/kernel_method.h"
#include "core/theory/one_thread.h"
#include "kernels/base/error.h"

namespace pal::theory {
namespace {

struct ScaleCase {
  ToySet train, test;
  std::vector<char> known;
  Matrix graph;
};

ScaleCase scale_case(int64_t n, int64_t known) {
  Random random(4, Purpose::bench);
  ScaleCase c{toy_train(ToyKind::circles, n, 0.1, random), toy_test(ToyKind::circles, 400, 0.1, random),
              std::vector<char>(n, 0), identity(n)};
  for (int64_t i = 0; i < known; ++i) c.known[i] = 1;
  for (int64_t i = 0; i < known; ++i) {
    for (int64_t j = 0; j < known; ++j) c.graph(i, j) = c.train.y[i] == c.train.y[j] ? 1 : -1;
  }
  return c;
}

TEST(Nystrom, WithEveryPointALandmarkItIsTheDenseSolution) {
  const OneThread scope;
  const ScaleCase c = scale_case(200, 60);
  NystromOptions options;
  options.landmarks = 200;
  KernelMethod dense(c.train, c.test, options.kernel);
  const Matrix& vectors = dense.fit(c.graph);
  std::vector<double> values;
  const NystromMethod method(c.train, options);
  const Matrix coefficients = method.fit(c.known, &values);
  for (size_t k = 0; k < values.size(); ++k)
    EXPECT_NEAR(values[k], dense.eigenvalues()[k], 1e-6 * (1 + std::abs(values[k])));
  EXPECT_LT(largest_angle_sine(transpose(method.represent(c.train.x, coefficients)), vectors), 1e-4);
  EXPECT_NEAR(probe_rows(method.represent(c.test.x, coefficients), c.test.y).mse, dense.downstream(vectors).mse, 1e-5);
}

TEST(Nystrom, FewerLandmarksCostLittle) {
  const OneThread scope;
  const ScaleCase c = scale_case(2000, 2000);
  NystromOptions options;
  options.landmarks = 500;
  KernelMethod dense(c.train, c.test, options.kernel);
  const NystromMethod method(c.train, options);
  const double error = probe_rows(method.represent(c.test.x, method.fit(c.known)), c.test.y).error;
  EXPECT_LT(error, dense.downstream(dense.fit(c.graph)).error + 0.05);
}

TEST(Nystrom, TilesChangeNothing) {
  const OneThread scope;
  const ScaleCase c = scale_case(150, 70);
  NystromOptions options;
  options.landmarks = 50;
  const NystromMethod whole(c.train, options);
  options.tile = 7;
  const NystromMethod tiles(c.train, options);
  std::vector<double> a, b;
  whole.fit(c.known, &a);
  tiles.fit(c.known, &b);
  for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-8 * (1 + std::abs(a[k])));
}

TEST(Nystrom, RefusesMoreLandmarksThanPoints) {
  const ScaleCase c = scale_case(20, 5);
  NystromOptions options;
  options.landmarks = 21;
  EXPECT_THROW(NystromMethod(c.train, options), Error);
}

}  // namespace
}  // namespace pal::theory
