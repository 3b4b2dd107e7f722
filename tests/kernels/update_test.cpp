// update: every instruction set gives the bits of the plain formula.
#include "kernels/update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/base/philox.h"

namespace pal::kernels {
namespace {

template <class T>
class Update : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Update, Types);

template <class T>
std::vector<T> drawn(int64_t n, uint64_t purpose) {
  Random random(7, Purpose::bench, purpose, 0, 0);
  std::vector<T> x(n);
  for (T& v : x) v = static_cast<T>(random.normal());
  return x;
}

std::vector<Isa> sets() {
  std::vector<Isa> all;
  for (Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512})
    if (isa_supported(isa)) all.push_back(isa);
  return all;
}

TYPED_TEST(Update, HasTheBitsOfItsFormula) {
  using T = TypeParam;
  for (const Isa isa : sets()) {
    for (const int64_t n : {0, 1, 7, 8, 64, 333}) {
      SCOPED_TRACE(testing::Message() << isa_name(isa) << ", " << n << ", seed 7");
      const UpdateOps<T>& ops = update_ops<T>(isa);
      const std::vector<T> g = drawn<T>(n, 1);
      std::vector<T> p = drawn<T>(n, 2), b = drawn<T>(n, 3), v(n, T(0.5));
      std::vector<T> q = p, c = b;
      const MomentumNumbers<T> k{T(0.1), T(0.9), T(0.01), T(0.7)};
      ops.momentum(p.data(), b.data(), g.data(), k, n);
      for (int64_t i = 0; i < n; ++i) {
        c[i] = k.momentum * c[i] + k.factor * (g[i] + k.decay * q[i]);
        q[i] -= k.rate * c[i];
      }
      EXPECT_EQ(p, q);
      EXPECT_EQ(b, c);

      std::vector<T> w = v;
      const AdamNumbers<T> a{T(0.99), T(0.9), T(0.1), T(0.999), T(0.001), T(0.02), T(1.5), T(1e-8)};
      ops.adam(p.data(), b.data(), v.data(), g.data(), a, n);
      for (int64_t i = 0; i < n; ++i) {
        c[i] = a.beta1 * c[i] + a.rest1 * g[i];
        w[i] = a.beta2 * w[i] + a.rest2 * g[i] * g[i];
        q[i] = a.keep * q[i] - a.rate * c[i] / (std::sqrt(w[i]) * a.root + a.epsilon);
      }
      EXPECT_EQ(p, q);
      EXPECT_EQ(b, c);
      EXPECT_EQ(v, w);

      double of_p = -1, of_update = -1, scalar_p = -1, scalar_update = -1, sum_p = 0, sum_update = 0;
      ops.squares(&of_p, &of_update, p.data(), g.data(), k.decay, n);
      update_ops<T>(Isa::scalar).squares(&scalar_p, &scalar_update, p.data(), g.data(), k.decay, n);
      for (int64_t i = 0; i < n; ++i) {
        sum_p += double(p[i]) * double(p[i]);
        const double u = g[i] + k.decay * p[i];
        sum_update += u * u;
      }
      EXPECT_EQ(of_p, scalar_p);
      EXPECT_EQ(of_update, scalar_update);
      EXPECT_NEAR(of_p, sum_p, 1e-13 * (1 + sum_p));
      EXPECT_NEAR(of_update, sum_update, 1e-13 * (1 + sum_update));
    }
  }
}

}  // namespace
}  // namespace pal::kernels
