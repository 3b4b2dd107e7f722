// theory: every checked statement of the paper, and the minimizer.
#include <gtest/gtest.h>

#include <cmath>

#include "core/theory/dense_losses.h"
#include "core/theory/one_thread.h"
#include "core/theory/statement.h"

namespace pal::theory {
namespace {

TEST(Theory, EveryStatementHolds) {
  std::vector<int64_t> done;
  const std::vector<CheckedClaim> all = check_statements([&](int64_t groups, int64_t total) {
    EXPECT_EQ(total, 4);
    done.push_back(groups);
  });
  EXPECT_EQ(done, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_GE(all.size(), 20u);
  for (const CheckedClaim& s : all) EXPECT_TRUE(s.holds) << s.group << ": " << s.claim << "\n  " << s.figure;
}

TEST(Theory, TheMinimizerFindsAKnownMinimum) {
  const OneThread scope;
  // Rosenbrock's valley in two variables.
  const Minimum m = minimize(
      [](const Matrix& x, Matrix& d) {
        const double a = x(0, 0), b = x(0, 1);
        d = Matrix(1, 2);
        d(0, 0) = -2 * (1 - a) - 400 * a * (b - a * a);
        d(0, 1) = 200 * (b - a * a);
        return (1 - a) * (1 - a) + 100 * (b - a * a) * (b - a * a);
      },
      Matrix(1, 2, -1.2), 1e-10);
  EXPECT_NEAR(m.x(0, 0), 1, 1e-7);
  EXPECT_NEAR(m.x(0, 1), 1, 1e-7);
  EXPECT_LT(m.steps, 200);
}

TEST(Theory, DenseGradientsAreThoseOfTheirValues) {
  const OneThread scope;
  const Matrix g = supervised_graph({3, 2}), z = random_normal(5, 2, 40);
  for (auto* loss : {literal_vic2, literal_printed_vic2}) {
    Matrix gradient;
    loss(z, g, &gradient);
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t k = 0; k < 2; ++k) {
        Matrix up = z, down = z;
        up(i, k) += 1e-5;
        down(i, k) -= 1e-5;
        EXPECT_NEAR((loss(up, g, nullptr) - loss(down, g, nullptr)) / 2e-5, gradient(i, k),
                    1e-6 * (1 + std::abs(gradient(i, k))));
      }
    }
  }
}

}  // namespace
}  // namespace pal::theory
