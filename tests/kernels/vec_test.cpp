// vec: every primitive against a plain loop, for every instruction set, with lengths around its vectors.
#include "kernels/base/vec.h"

#include <limits>

#include "tests/kernels/common.h"

namespace pal::kernels {
namespace {

template <class T>
class VecTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(VecTest, Types);

TYPED_TEST(VecTest, EqualsThePlainLoop) {
  using T = TypeParam;
  for (const Cpu cpu : all_cpus()) {
    const VecOps<T>& vec = vec_ops<T>(cpu.isa);
    for (const int64_t n : {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100}) {
      SCOPED_TRACE(describe(cpu) + ", n " + std::to_string(n));
      const auto a = random_matrix<T>(1, n, 1), b = random_matrix<T>(1, n, 2);
      const auto m = random_matrix<double>(1, n, 3);
      double dot = 0, distance = 0, square = 0, apart = 0;
      for (int64_t k = 0; k < n; ++k) {
        const double x = a.get(0, k), y = b.get(0, k);
        dot += x * y;
        distance += (x - y) * (x - y);
        square += y * y;
        apart += (x - m.at(0, k)) * (x - m.at(0, k));
      }
      EXPECT_NEAR(vec.dot(a.data.data(), b.data.data(), n), dot, 1e-12);
      EXPECT_NEAR(vec.squared_distance(a.data.data(), b.data.data(), n), distance, 1e-12);
      double got_dot = -1, got_square = -1;
      vec.dot_and_square(&got_dot, &got_square, a.data.data(), b.data.data(), n);
      EXPECT_NEAR(got_dot, dot, 1e-12);
      EXPECT_NEAR(got_square, square, 1e-12);

      auto axpy = a, narrow = a, narrow_add = a, difference = a, difference_add = a;
      std::vector<double> wide(n, 0.5), squares(n, 0.5);
      vec.axpy(axpy.data.data(), -1.5, b.data.data(), n);
      vec.scale_narrow(narrow.data.data(), -1.5, m.data.data(), n);
      vec.scale_narrow_add(narrow_add.data.data(), -1.5, m.data.data(), n);
      EXPECT_NEAR(vec.difference(difference.data.data(), -1.5, a.data.data(), m.data.data(), n), apart, 1e-12);
      EXPECT_NEAR(vec.difference_add(difference_add.data.data(), -1.5, a.data.data(), m.data.data(), n), apart, 1e-12);
      EXPECT_NEAR(vec.difference(nullptr, 1, a.data.data(), m.data.data(), n), apart, 1e-12);
      vec.add_wide(wide.data(), a.data.data(), n);
      vec.add_squares(squares.data(), a.data.data(), m.data.data(), n);
      const double ulp = 4 * static_cast<double>(std::numeric_limits<T>::epsilon());
      for (int64_t k = 0; k < n; ++k) {
        const double x = a.get(0, k), y = b.get(0, k), c = m.at(0, k);
        EXPECT_NEAR(axpy.get(0, k), x - 1.5 * y, 4 * ulp);
        EXPECT_NEAR(narrow.get(0, k), -1.5 * c, 4 * ulp);
        EXPECT_NEAR(narrow_add.get(0, k), x - 1.5 * c, 4 * ulp);
        EXPECT_NEAR(difference.get(0, k), -1.5 * (x - c), 4 * ulp);
        EXPECT_NEAR(difference_add.get(0, k), x - 1.5 * (x - c), 4 * ulp);
        EXPECT_NEAR(wide[k], 0.5 + x, 1e-14);
        EXPECT_NEAR(squares[k], 0.5 + (x - c) * (x - c), 1e-13);
      }
    }
  }
}

TYPED_TEST(VecTest, FindsTheFirstNumberThatIsNotFinite) {
  using T = TypeParam;
  for (const Cpu cpu : all_cpus()) {
    const VecOps<T>& vec = vec_ops<T>(cpu.isa);
    for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                        -std::numeric_limits<T>::infinity()}) {
      for (const int64_t at : {0, 1, 17, 4095, 4096, 9999}) {
        std::vector<T> x(10000, std::numeric_limits<T>::max());
        EXPECT_EQ(vec.first_not_finite(x.data(), 10000), -1);
        x[at] = x[9999] = bad;
        EXPECT_EQ(vec.first_not_finite(x.data(), 10000), at) << describe(cpu);
        EXPECT_EQ(vec.first_not_finite(x.data(), at), -1) << describe(cpu);
      }
    }
  }
}

TEST(IndexOps, FindsTheFirstIndexOutside) {
  for (const Cpu cpu : all_cpus()) {
    const IndexOps& index = index_ops(cpu.isa);
    for (const int64_t at : {0, 5, 4095, 4096, 9000}) {
      for (const int32_t bad : {-1, 7, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()}) {
        std::vector<int32_t> x(9001, 6);
        x[1] = 0;
        EXPECT_EQ(index.first_outside(x.data(), 9001, 0, 7), -1);
        x[at] = bad;
        EXPECT_EQ(index.first_outside(x.data(), 9001, 0, 7), at) << bad;
        if (bad == -1) {
          EXPECT_EQ(index.first_outside(x.data(), 9001, -1, 7), -1);
        }
      }
    }
    const std::vector<int32_t> any = {-1, 0, std::numeric_limits<int32_t>::max()};
    EXPECT_EQ(index.first_outside(any.data(), 3, -1, int64_t{1} << 31), -1);
    EXPECT_EQ(index.first_outside(any.data(), 3, 0, 0), 0) << "nothing lies in an empty range";
  }
}

}  // namespace
}  // namespace pal::kernels
