// moments: covariance and Gram forms against the formulas of the header in double precision.
#include "kernels/moments.h"

#include "tests/kernels/common.h"

namespace pal::kernels {
namespace {

template <class T>
std::vector<double> mean_of(const Matrix<T>& z, Cpu cpu = {}) {
  std::vector<double> sums(z.cols, -1.0);
  OwnScratch scratch(cpu::column_sums_scratch_bytes(z.rows, z.cols));
  cpu::column_sums<T>(span(sums), z.view(), scratch, cpu);
  for (double& s : sums) s /= static_cast<double>(z.rows);
  return sums;
}

template <class T>
std::vector<double> second_moment(const Matrix<T>& z, const std::vector<double>& mean, const MomentsOptions& o,
                                  Cpu cpu = {}) {
  std::vector<double> packed(packed_size(z.cols), -1.0);
  OwnScratch scratch(cpu::centered_second_moment_scratch_bytes<T>(z.rows, z.cols, o));
  cpu::centered_second_moment<T>(span(packed), z.view(), span(mean), o, scratch, cpu);
  return packed;
}

template <class T>
struct Terms {
  double variance = -1, covariance = -1;
  Matrix<T> gradient;
};

template <class T>
Terms<T> covariance_form(const Matrix<T>& z, const MomentsOptions& o, Into into = Into::overwrite, Cpu cpu = {}) {
  Terms<T> t{-1, -1, Matrix<T>(z.rows, z.cols, 2)};
  t.gradient.fill(static_cast<T>(0.125));
  const auto mean = mean_of(z, cpu);
  const auto packed = second_moment(z, mean, o, cpu);
  Matrix<T> a(z.cols, z.cols, 1);
  cpu::covariance_terms<T>(a.view(), &t.variance, &t.covariance, span(packed), z.rows, o, cpu);
  OwnScratch scratch(cpu::centered_product_scratch_bytes<T>(z.rows, z.cols));
  cpu::centered_product<T>(t.gradient.view(), z.view(), span(mean), std::as_const(a).view(), into, scratch, cpu);
  return t;
}

template <class T>
Terms<T> gram_form(const Matrix<T>& z, const MomentsOptions& o, int64_t begin, int64_t rows,
                   Into into = Into::overwrite, Cpu cpu = {}) {
  Terms<T> t{-1, -1, Matrix<T>(rows, z.cols, 2)};
  t.gradient.fill(static_cast<T>(0.125));
  const auto mean = mean_of(z, cpu);
  OwnScratch scratch(cpu::gram_terms_scratch_bytes<T>(z.rows, z.cols, o));
  cpu::gram_terms<T>(t.gradient.view(), &t.variance, &t.covariance, z.view(), span(mean), begin, o, into, scratch, cpu);
  return t;
}

// Straight from the header, by loops.
template <class T>
Terms<double> reference(const Matrix<T>& z, const MomentsOptions& o, Into into) {
  const int64_t n = z.rows, dims = z.cols;
  Matrix<double> centered(n, dims), c(dims, dims);
  for (int64_t k = 0; k < dims; ++k) {
    double m = 0;
    for (int64_t i = 0; i < n; ++i) m += z.get(i, k);
    m /= static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) centered.at(i, k) = z.get(i, k) - m;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < dims; ++k) {
      for (int64_t l = 0; l < dims; ++l) c.at(k, l) += centered.at(i, k) * centered.at(i, l) / (n - 1.0);
    }
  }
  Terms<double> t{0, 0, Matrix<double>(n, dims)};
  Matrix<double> a(dims, dims);
  for (int64_t k = 0; k < dims; ++k) {
    const double v = c.at(k, k), s = std::sqrt(v + o.epsilon);
    const double term[] = {std::max(0.0, o.gamma - s), (1 - v) * (1 - v), v * v};  // in the order of Variance
    const double slope[] = {s < o.gamma ? -1 / s : 0.0, -4 * (1 - v), 4 * v};
    t.variance += term[static_cast<int>(o.variance)];
    a.at(k, k) = o.variance_weight * slope[static_cast<int>(o.variance)] / (n - 1.0);
    for (int64_t l = 0; l < dims; ++l) {
      if (k == l) continue;
      t.covariance += c.at(k, l) * c.at(k, l);
      a.at(k, l) = 4 * o.covariance_weight * c.at(k, l) / (n - 1.0);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < dims; ++k) {
      double g = into == Into::add ? 0.125 : 0.0;
      for (int64_t l = 0; l < dims; ++l) g += centered.at(i, l) * a.at(l, k);
      t.gradient.at(i, k) = g;
    }
  }
  return t;
}

// Columns of different spread, so that the hinge is on for some and off for others.
template <class T>
Matrix<T> spread_matrix(int64_t rows, int64_t dims, uint64_t seed, double mean) {
  auto z = random_matrix<double>(rows, dims, seed);
  Matrix<T> out(rows, dims, 3);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < dims; ++k)
      out.at(i, k) = static_cast<T>(mean + z.at(i, k) * (0.5 + static_cast<double>(k % 3) * 0.5));
  }
  return out;
}

template <class T>
class MomentsTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(MomentsTest, Types);

TYPED_TEST(MomentsTest, BothFormsEqualTheFormulas) {
  using T = TypeParam;
  const uint64_t seed = 201;
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const auto& [rows, dims] :
       {std::pair<int64_t, int64_t>{2, 1}, {5, 3}, {40, 17}, {17, 40}, {70, 33}, {9, 150}, {130, 70}}) {
    for (const double mean : {0.0, 1e4}) {
      const auto z = spread_matrix<T>(rows, dims, seed, mean);
      for (const Variance variance : {Variance::hinge, Variance::squared, Variance::norm}) {
        for (const Accumulate accumulate : {Accumulate::fp64, Accumulate::native}) {
          const MomentsOptions o{variance, 1.0, 1e-4, 25.0, 3.0, accumulate};
          const Into into = variance == Variance::hinge ? Into::add : Into::overwrite;
          const auto expected = reference(z, o, into);
          const double exact = accumulate == Accumulate::fp64 ? 1e-10 : tolerance<T>(1e-5, 1e-10);
          for (const Cpu cpu : all_cpus()) {
            SCOPED_TRACE(describe(cpu) + ", n " + std::to_string(rows) + ", D " + std::to_string(dims) + ", mean " +
                         std::to_string(mean));
            for (const bool gram : {false, true}) {
              SCOPED_TRACE(gram ? "Gram form" : "covariance form");
              const auto got = gram ? gram_form(z, o, 0, rows, into, cpu) : covariance_form(z, o, into, cpu);
              EXPECT_NEAR(got.variance, expected.variance, exact * std::max(1.0, expected.variance));
              // The Gram form subtracts ΣC_kk² from a sum of its size.
              EXPECT_NEAR(got.covariance, expected.covariance, exact * std::max(expected.covariance, 1.0 * dims));
              EXPECT_LT(relative_error(got.gradient, expected.gradient), tolerance<T>(2e-6, 1e-10));
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(MomentsTest, DeeperThanOneStepOfThePanels) {
  using T = TypeParam;
  const MomentsOptions o;
  const auto tall = spread_matrix<T>(2100, 20, 211, 3.0), wide = spread_matrix<T>(20, 2100, 212, 3.0);
  const auto expected = reference(tall, o, Into::overwrite);
  const auto got = covariance_form(tall, o);
  EXPECT_LT(relative_error(got.covariance, expected.covariance), 1e-11);
  EXPECT_LT(relative_error(got.gradient, expected.gradient), tolerance<T>(2e-6, 1e-11));
  const auto by_covariance = covariance_form(wide, o), by_gram = gram_form(wide, o, 0, 20);
  EXPECT_LT(relative_error(by_gram.covariance, by_covariance.covariance), 1e-10);
  EXPECT_LT(relative_error(by_gram.variance, by_covariance.variance), 1e-10);
  Matrix<double> other(20, 2100);
  for (int64_t i = 0; i < 20; ++i) {
    for (int64_t k = 0; k < 2100; ++k) other.at(i, k) = by_covariance.gradient.get(i, k);
  }
  EXPECT_LT(relative_error(by_gram.gradient, other), tolerance<T>(2e-6, 1e-10));
}

// The basis of world-size invariance: after rounding to T the result does not depend on how the rows were split.
TYPED_TEST(MomentsTest, SplitRowsAddUpAndOwnRowsKeepTheirBits) {
  using T = TypeParam;
  const int64_t n = 37, dims = 50, cut = 13;
  const auto z = spread_matrix<T>(n, dims, 221, 5.0);
  Matrix<T> head(cut, dims), tail(n - cut, dims);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < dims; ++k) (i < cut ? head.at(i, k) : tail.at(i - cut, k)) = z.at(i, k);
  }
  const MomentsOptions o;
  const auto mean = mean_of(z);
  const auto all = second_moment(z, mean, o), first = second_moment(head, mean, o),
             second = second_moment(tail, mean, o);
  for (size_t e = 0; e < all.size(); ++e) EXPECT_NEAR(first[e] + second[e], all[e], 1e-12 * (1 + std::abs(all[e])));

  Matrix<T> a(dims, dims), whole(n, dims), part(n - cut, dims);
  cpu::covariance_terms<T>(a.view(), nullptr, nullptr, span(all), n, o, Cpu{});
  OwnScratch scratch(cpu::centered_product_scratch_bytes<T>(n, dims));
  cpu::centered_product<T>(whole.view(), z.view(), span(mean), std::as_const(a).view(), Into::overwrite, scratch,
                           Cpu{});
  cpu::centered_product<T>(part.view(), std::as_const(tail).view(), span(mean), std::as_const(a).view(),
                           Into::overwrite, scratch, Cpu{});
  const auto gram_whole = gram_form(z, o, 0, n), gram_part = gram_form(z, o, cut, n - cut);
  EXPECT_EQ(gram_whole.covariance, gram_part.covariance);
  for (int64_t i = cut; i < n; ++i) {
    for (int64_t k = 0; k < dims; ++k) {
      EXPECT_EQ(part.at(i - cut, k), whole.at(i, k));
      EXPECT_EQ(gram_part.gradient.at(i - cut, k), gram_whole.gradient.at(i, k));
    }
  }
}

TYPED_TEST(MomentsTest, BitsDoNotDependOnTheThreads) {
  using T = TypeParam;
  const auto z = spread_matrix<T>(150, 140, 231, 0.0);
  const MomentsOptions o;
  const auto covariance = covariance_form(z, o, Into::overwrite, Cpu{1}),
             gram = gram_form(z, o, 0, 150, Into::overwrite, Cpu{1});
  const auto mean = mean_of(z, Cpu{1});
  for (const int threads : {2, 3, 4}) {
    EXPECT_EQ(mean_of(z, Cpu{threads}), mean);
    const auto c = covariance_form(z, o, Into::overwrite, Cpu{threads}),
               g = gram_form(z, o, 0, 150, Into::overwrite, Cpu{threads});
    EXPECT_EQ(c.variance, covariance.variance);
    EXPECT_EQ(c.covariance, covariance.covariance);
    EXPECT_EQ(g.variance, gram.variance);
    EXPECT_EQ(g.covariance, gram.covariance);
    for (int64_t i = 0; i < 150; ++i) {
      for (int64_t k = 0; k < 140; ++k) {
        EXPECT_EQ(c.gradient.at(i, k), covariance.gradient.at(i, k));
        EXPECT_EQ(g.gradient.at(i, k), gram.gradient.at(i, k));
      }
    }
  }
}

TYPED_TEST(MomentsTest, GradientIsTheFiniteDifference) {
  using T = TypeParam;
  if constexpr (sizeof(T) == sizeof(double)) {
    auto z = spread_matrix<T>(7, 5, 241, 1.0);
    for (const Variance variance : {Variance::hinge, Variance::squared, Variance::norm}) {
      const MomentsOptions o{variance, 1.0, 1e-4, 2.0, 3.0, Accumulate::fp64};
      const auto value = [&] {
        const auto t = covariance_form(z, o);
        return o.variance_weight * t.variance + o.covariance_weight * t.covariance;
      };
      const auto gradient = covariance_form(z, o).gradient;
      for (int64_t i = 0; i < 7; ++i) {
        for (int64_t k = 0; k < 5; ++k) {
          const T keep = z.at(i, k), h = 1e-5;
          z.at(i, k) = keep + h;
          const double above = value();
          z.at(i, k) = keep - h;
          const double below = value();
          z.at(i, k) = keep;
          EXPECT_NEAR(gradient.at(i, k), (above - below) / (2 * h), 1e-7);
        }
      }
    }
  }
}

TYPED_TEST(MomentsTest, NoRowsAndNoGradient) {
  using T = TypeParam;
  const MomentsOptions o;
  const Matrix<T> none(0, 3);
  const std::vector<double> mean(3, 1.0);
  EXPECT_EQ(second_moment(none, mean, o), std::vector<double>(6, 0.0));
  const auto z = spread_matrix<T>(12, 3, 251, 0.0);
  const auto full = covariance_form(z, o);
  const auto packed = second_moment(z, mean_of(z), o);
  double variance = -1, covariance = -1;
  cpu::covariance_terms<T>({}, &variance, &covariance, span(packed), 12, o, Cpu{});
  EXPECT_EQ(variance, full.variance);
  EXPECT_EQ(covariance, full.covariance);
}

TYPED_TEST(MomentsTest, RefusesBadArguments) {
  using T = TypeParam;
  const MomentsOptions o;
  const auto z = spread_matrix<T>(4, 3, 261, 0.0);
  const std::vector<double> mean(3), short_mean(2);
  std::vector<double> sums(2), packed(6), short_packed(5);
  Matrix<T> a(3, 3), out(4, 3), narrow(4, 2);
  OwnScratch scratch(1 << 20), small(1);
  expect_error([&] { cpu::column_sums<T>(span(sums), z.view(), scratch, Cpu{}); }, "sums");
  expect_error([&] { cpu::centered_second_moment<T>(span(packed), z.view(), span(short_mean), o, scratch, Cpu{}); },
               "mean");
  expect_error([&] { cpu::centered_second_moment<T>(span(short_packed), z.view(), span(mean), o, scratch, Cpu{}); },
               "packed");
  expect_error([&] { cpu::centered_second_moment<T>(span(packed), z.view(), span(mean), o, small, Cpu{}); }, "scratch");
  expect_error([&] { cpu::covariance_terms<T>(a.view(), nullptr, nullptr, span(packed), 1, o, Cpu{}); }, "n: 1");
  expect_error([&] { cpu::covariance_terms<T>({}, nullptr, nullptr, span(short_packed), 4, o, Cpu{}); }, "packed");
  expect_error(
      [&] {
        cpu::centered_product<T>(narrow.view(), z.view(), span(mean), std::as_const(a).view(), Into::add, scratch,
                                 Cpu{});
      },
      "out");
  expect_error(
      [&] {
        cpu::centered_product<T>(out.view(), z.view(), span(mean), std::as_const(a).view(), Into::add, small, Cpu{});
      },
      "scratch");
  expect_error(
      [&] { cpu::gram_terms<T>(out.view(), nullptr, nullptr, z.view(), span(mean), 1, o, Into::add, scratch, Cpu{}); },
      "begin");
  expect_error(
      [&] { cpu::gram_terms<T>(out.view(), nullptr, nullptr, z.view(), span(mean), 0, o, Into::add, small, Cpu{}); },
      "scratch");
}

TEST(Moments, PackedTriangleAndTheRuleThatChooses) {
  EXPECT_EQ(packed_size(8192), int64_t{33'558'528});
  int64_t expected = 0;
  for (int64_t k = 0; k < 7; ++k) {
    for (int64_t l = k; l < 7; ++l) EXPECT_EQ(packed_index(k, l, 7), expected++);
  }
  EXPECT_TRUE(covariance_form_wins(2048, 512, 4, 8));
  EXPECT_FALSE(covariance_form_wins(256, 2048, 4, 8));
}

}  // namespace
}  // namespace pal::kernels
