// row_logsumexp and its gradient: the header's formulas in double precision, finite differences, large logits.
#include "kernels/row_logsumexp.h"

#include <numeric>

#include "kernels/row_logsumexp_impl.h"
#include "tests/kernels/common.h"

namespace pal::kernels {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Terms {
  std::vector<double> lse, degrees;
  LogSumExpTerms view() const { return {span(lse), span(degrees)}; }
};

template <class T>
Matrix<T> unit_rows(int64_t rows, int64_t cols, uint64_t seed, int64_t pad = 0) {
  auto m = random_matrix<T>(rows, cols, seed, pad);
  for (int64_t i = 0; i < rows; ++i) {
    double square = 0;
    for (int64_t k = 0; k < cols; ++k) square += m.get(i, k) * m.get(i, k);
    for (int64_t k = 0; k < cols; ++k) m.at(i, k) = static_cast<T>(m.get(i, k) / std::sqrt(square));
  }
  return m;
}

// Rows `index` of all, as a rank holds them.
template <class T>
Matrix<T> some_rows(const Matrix<T>& all, const std::vector<int64_t>& index) {
  Matrix<T> m(static_cast<int64_t>(index.size()), all.cols);
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t k = 0; k < m.cols; ++k) m.at(i, k) = all.at(index[i], k);
  }
  return m;
}

std::vector<int64_t> range(int64_t n) {
  std::vector<int64_t> v(n);
  std::iota(v.begin(), v.end(), 0);
  return v;
}

template <class T>
double similarity(const Matrix<T>& a, int64_t i, const Matrix<T>& b, int64_t j, double temperature) {
  double s = 0;
  for (int64_t k = 0; k < a.cols; ++k) s += a.get(i, k) * b.get(j, k);
  return s / temperature;
}

template <class T>
std::vector<double> reference(const Matrix<T>& rows, const Matrix<T>& columns, const std::vector<int64_t>& self,
                              double temperature) {
  std::vector<double> lse(rows.rows, -kInfinity);
  for (int64_t i = 0; i < rows.rows; ++i) {
    std::vector<double> s;
    for (int64_t j = 0; j < columns.rows; ++j) {
      if (self.empty() || self[i] != j) s.push_back(similarity(rows, i, columns, j, temperature));
    }
    if (s.empty()) continue;
    const double max = *std::max_element(s.begin(), s.end());
    double sum = 0;
    for (const double x : s) sum += std::exp(x - max);
    lse[i] = max + std::log(sum);
  }
  return lse;
}

template <class T>
Matrix<double> reference_gradient(const Matrix<T>& rows, const Matrix<T>& columns, const std::vector<int64_t>& self,
                                  const Terms& own, const Terms& theirs, const RowLogSumExpOptions& o, double before) {
  Matrix<double> out(rows.rows, rows.cols);
  for (int64_t i = 0; i < rows.rows; ++i) {
    std::vector<double> row(rows.cols);
    for (int64_t j = 0; j < columns.rows; ++j) {
      if (!self.empty() && self[i] == j) continue;
      const double s = similarity(rows, i, columns, j, o.temperature);
      double w = own.degrees[i] * std::exp(s - own.lse[i]);
      if (!theirs.lse.empty()) w += theirs.degrees[j] * std::exp(s - theirs.lse[j]);
      for (int64_t k = 0; k < rows.cols; ++k) row[k] += w * columns.get(j, k);
    }
    for (int64_t k = 0; k < rows.cols; ++k) {
      out.at(i, k) = (o.into == Into::add ? before : 0) + o.scale / o.temperature * row[k];
    }
  }
  return out;
}

template <class T>
std::vector<double> run(const Matrix<T>& rows, const Matrix<T>& columns, const std::vector<int64_t>& self,
                        double temperature, Cpu cpu = {}) {
  std::vector<double> lse(rows.rows, -7);
  OwnScratch scratch(cpu::row_logsumexp_scratch_bytes<T>(rows.rows, columns.rows, rows.cols));
  cpu::row_logsumexp<T>(span(lse), rows.view(), columns.view(), span(self), {temperature, 1, Into::overwrite}, scratch,
                        cpu);
  return lse;
}

template <class T>
void run_gradient(Matrix<T>& out, const Matrix<T>& rows, const Matrix<T>& columns, const std::vector<int64_t>& self,
                  const Terms& own, const Terms& theirs, const RowLogSumExpOptions& o, Cpu cpu = {}) {
  OwnScratch scratch(cpu::row_logsumexp_gradient_scratch_bytes<T>(rows.rows, columns.rows, rows.cols));
  cpu::row_logsumexp_gradient<T>(out.view(), rows.view(), columns.view(), span(self), own.view(), theirs.view(), o,
                                 scratch, cpu);
}

std::vector<double> random_degrees(int64_t n, uint64_t seed) {
  Random random(seed, Purpose::bench);
  std::vector<double> d(n);
  for (double& x : d) x = std::abs(random.normal());
  return d;
}

template <class T>
class RowLogSumExpTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(RowLogSumExpTest, Types);

TYPED_TEST(RowLogSumExpTest, ExponentialIsWithinTwoUnitsInTheLastPlace) {
  using T = TypeParam;
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  std::vector<T> x, y;
  const double end = std::log(static_cast<double>(kMost)) - 0.5;
  for (int i = 0; i <= 200'003; ++i) x.push_back(static_cast<T>(end * (i / 100'000.0 - 1)));
  y.resize(x.size());
  const T limit = std::numeric_limits<T>::infinity();
  std::vector<T> edge = {-limit, limit, std::numeric_limits<T>::quiet_NaN(), T{0}, -kMost, kMost}, at(edge.size());
  for (const Cpu cpu : all_cpus()) {
    SCOPED_TRACE(describe(cpu));
    const auto& ops = row_logsumexp_ops<T>(cpu.isa);
    ops.exp(y.data(), x.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const long double expected = std::exp(static_cast<long double>(x[i]));
      if (expected < 2 * kLeast) continue;
      worst = std::max(worst,
                       static_cast<double>(std::abs(y[i] - expected) / (expected * std::numeric_limits<T>::epsilon())));
    }
    EXPECT_LT(worst, 2);
    ops.exp(at.data(), edge.data(), static_cast<int64_t>(edge.size()));
    EXPECT_EQ(at[0], 0);
    EXPECT_EQ(at[1], limit);
    EXPECT_TRUE(std::isnan(at[2]));
    EXPECT_EQ(at[3], 1);
    EXPECT_EQ(at[4], 0);
    EXPECT_EQ(at[5], limit);
  }
}

TYPED_TEST(RowLogSumExpTest, EqualsTheFormulasForAnyWidth) {
  using T = TypeParam;
  const uint64_t seed = 11;
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const int64_t dims : {1, 2, 7, 16, 33, 100, 128, 131, 257, 1100}) {
    const auto columns = unit_rows<T>(211, dims, seed, 5);
    const std::vector<int64_t> self = {3, 210, 0, -1, 7, 7, 100};
    const auto rows = unit_rows<T>(7, dims, seed + 1, 2);
    const RowLogSumExpOptions options{0.2, -1.5, dims % 2 ? Into::add : Into::overwrite};
    const auto expected = reference(rows, columns, self, options.temperature);
    const Terms own{expected, random_degrees(7, seed + 2)},
        theirs{reference(columns, columns, range(211), options.temperature), random_degrees(211, seed + 3)};
    for (const Cpu cpu : all_cpus()) {
      SCOPED_TRACE(describe(cpu) + ", D " + std::to_string(dims));
      const auto lse = run(rows, columns, self, options.temperature, cpu);
      for (int64_t i = 0; i < 7; ++i) EXPECT_NEAR(lse[i], expected[i], tolerance<T>(2e-6, 1e-14)) << i;
      for (const Terms& column_terms : {theirs, Terms{}}) {
        Matrix<T> out(7, dims, 3);
        out.fill(T{0.25});
        run_gradient(out, rows, columns, self, own, column_terms, options, cpu);
        EXPECT_LT(relative_error(out, reference_gradient(rows, columns, self, own, column_terms, options, 0.25)),
                  tolerance<T>(2e-6, 1e-14));
      }
    }
  }
}

TYPED_TEST(RowLogSumExpTest, WidthOf8192) {
  using T = TypeParam;
  const auto z = unit_rows<T>(60, 8192, 21);
  const auto expected = reference(z, z, range(60), 0.5);
  const Terms terms{expected, random_degrees(60, 22)};
  for (const Cpu cpu : all_cpus()) {
    const auto lse = run(z, z, range(60), 0.5, cpu);
    for (int64_t i = 0; i < 60; ++i) EXPECT_NEAR(lse[i], expected[i], tolerance<T>(1e-6, 1e-13)) << describe(cpu);
    Matrix<T> out(60, 8192);
    run_gradient(out, z, z, range(60), terms, terms, {0.5, 1, Into::overwrite}, cpu);
    EXPECT_LT(relative_error(out, reference_gradient(z, z, range(60), terms, terms, {0.5, 1, Into::overwrite}, 0)),
              tolerance<T>(1e-6, 1e-14));
  }
}

// τ = 0.01: logits of ±100, whose exponentials overflow a float; rows that are copies of each other, and opposites.
TYPED_TEST(RowLogSumExpTest, LargeLogitsNeitherOverflowNorVanish) {
  using T = TypeParam;
  auto z = unit_rows<T>(400, 24, 31);
  for (int64_t k = 0; k < 24; ++k) {
    z.at(1, k) = z.at(0, k);
    for (int64_t i = 2; i < 400; i += 7) z.at(i, k) = -z.at(0, k);
  }
  const auto expected = reference(z, z, range(400), 0.01);
  EXPECT_GT(expected[0], 99);
  const Terms terms{expected, random_degrees(400, 32)};
  const auto gradient = reference_gradient(z, z, range(400), terms, terms, {0.01, 1, Into::overwrite}, 0);
  for (const Cpu cpu : all_cpus()) {
    SCOPED_TRACE(describe(cpu));
    const auto lse = run(z, z, range(400), 0.01, cpu);
    for (int64_t i = 0; i < 400; ++i) EXPECT_NEAR(lse[i], expected[i], tolerance<T>(5e-5, 1e-12));
    Matrix<T> out(400, 24);
    run_gradient(out, z, z, range(400), terms, terms, {0.01, 1, Into::overwrite}, cpu);
    EXPECT_LT(relative_error(out, gradient), tolerance<T>(3e-5, 1e-12));
  }
  // Rows of norm 30: logits of ±90,000.
  for (T& x : z.data) x *= 30;
  const auto far = reference(z, z, range(400), 0.01);
  for (const Cpu cpu : all_cpus()) {
    const auto lse = run(z, z, range(400), 0.01, cpu);
    for (int64_t i = 0; i < 400; ++i)
      EXPECT_LT(relative_error(lse[i], far[i]), tolerance<T>(1e-6, 1e-14)) << describe(cpu);
  }
}

// Similarities that are exact in T leave only the rounding of lse: near 128 a float of it is wrong by up to 4e-6.
TYPED_TEST(RowLogSumExpTest, GradientUsesTheWholeLse) {
  using T = TypeParam;
  auto z = random_matrix<T>(200, 16, 33);
  for (T& x : z.data) x = x < 0 ? T{-1} : T{1};
  for (int64_t k = 0; k < 16; ++k) z.at(0, k) = z.at(1, k) = z.at(2, k);
  const double temperature = 0.125;
  const Terms terms{reference(z, z, range(200), temperature), random_degrees(200, 34)};
  for (const Cpu cpu : all_cpus()) {
    Matrix<T> out(200, 16);
    run_gradient(out, z, z, range(200), terms, terms, {temperature, 1, Into::overwrite}, cpu);
    EXPECT_LT(
        relative_error(out, reference_gradient(z, z, range(200), terms, terms, {temperature, 1, Into::overwrite}, 0)),
        tolerance<T>(3e-7, 1e-15))
        << describe(cpu);
  }
}

TYPED_TEST(RowLogSumExpTest, GradientIsThatOfTheWeightedSum) {
  using T = TypeParam;
  if constexpr (sizeof(T) == sizeof(double)) {
    auto z = random_matrix<T>(9, 5, 41);
    const auto self = range(9);
    const auto degrees = random_degrees(9, 42);
    const auto value = [&](const Matrix<T>& rows, const Matrix<T>& columns) {
      const auto lse = run(rows, columns, self, 0.7);
      return std::inner_product(lse.begin(), lse.end(), degrees.begin(), 0.0);
    };
    const double h = 1e-5;
    const Terms terms{run(z, z, self, 0.7), degrees};
    Matrix<T> both(9, 5), rows_only(9, 5);
    run_gradient(both, z, z, self, terms, terms, {0.7, 1, Into::overwrite});
    run_gradient(rows_only, z, z, self, terms, {}, {0.7, 1, Into::overwrite});
    for (int64_t i = 0; i < 9; ++i) {
      for (int64_t k = 0; k < 5; ++k) {
        auto above = z, below = z;
        above.at(i, k) += h;
        below.at(i, k) -= h;
        EXPECT_NEAR(both.at(i, k), (value(above, above) - value(below, below)) / (2 * h), 1e-8);
        EXPECT_NEAR(rows_only.at(i, k), (value(above, z) - value(below, z)) / (2 * h), 1e-8) << "constant columns";
      }
    }
  }
}

// A rank's rows are those of its positions in every view; a row's bits depend neither on the rank that holds it nor on
// threads.
TYPED_TEST(RowLogSumExpTest, RanksAndThreadsKeepTheBits) {
  using T = TypeParam;
  const int64_t samples = 170, n = 2 * samples, dims = 37;
  const auto z = unit_rows<T>(n, dims, 51);
  const RowLogSumExpOptions options{0.1, 2, Into::overwrite};
  const Terms whole{run(z, z, range(n), 0.1, Cpu{1}), random_degrees(n, 52)};
  Matrix<T> gradient(n, dims);
  run_gradient(gradient, z, z, range(n), whole, whole, options, Cpu{1});
  for (const int threads : {1, 2, 3}) {
    EXPECT_EQ(run(z, z, range(n), 0.1, Cpu{threads}), whole.lse);
    Matrix<T> again(n, dims);
    run_gradient(again, z, z, range(n), whole, whole, options, Cpu{threads});
    EXPECT_EQ(again.data, gradient.data);
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 1}, {1, 90}, {90, 170}}) {
      std::vector<int64_t> own;
      for (int64_t view = 0; view < 2; ++view) {
        for (int64_t p = begin; p < end; ++p) own.push_back(view * samples + p);
      }
      const auto rows = some_rows(z, own);
      Terms terms{run(rows, z, own, 0.1, Cpu{threads}), {}};
      for (const int64_t i : own) terms.degrees.push_back(whole.degrees[i]);
      Matrix<T> part(rows.rows, dims);
      run_gradient(part, rows, z, own, terms, whole, options, Cpu{threads});
      for (size_t i = 0; i < own.size(); ++i) EXPECT_EQ(terms.lse[i], whole.lse[own[i]]);
      EXPECT_EQ(part.data, some_rows(gradient, own).data);
    }
  }
}

TYPED_TEST(RowLogSumExpTest, EmptyAndLonelyRowsAndNaN) {
  using T = TypeParam;
  const auto z = unit_rows<T>(3, 4, 61), one = unit_rows<T>(1, 4, 62);
  EXPECT_TRUE(run(Matrix<T>(0, 4), z, {}, 0.1).empty());
  EXPECT_EQ(run(z, Matrix<T>(0, 4), {}, 0.1), std::vector<double>(3, -kInfinity));
  EXPECT_EQ(run(one, one, {0}, 0.1), std::vector<double>{-kInfinity}) << "nothing but itself";
  Matrix<T> out(1, 4), none(3, 4), empty(0, 4);
  out.fill(T{9});
  none.fill(T{9});
  const Terms lonely{{-kInfinity}, {1.0}}, three{{-kInfinity, -kInfinity, -kInfinity}, {1, 1, 1}};
  run_gradient(out, one, one, {0}, lonely, lonely, {});
  EXPECT_EQ(out.data, Matrix<T>(1, 4).data);
  run_gradient(none, z, Matrix<T>(0, 4), {}, three, {}, {});
  EXPECT_EQ(none.data, Matrix<T>(3, 4).data);
  run_gradient(empty, Matrix<T>(0, 4), z, {}, {}, three, {});
  for (const Cpu cpu : all_cpus()) {
    auto bad = z;
    bad.at(1, 2) = std::numeric_limits<T>::quiet_NaN();
    for (const double x : run(z, bad, {}, 0.1, cpu)) EXPECT_TRUE(std::isnan(x)) << describe(cpu);
    const auto lse = run(bad, z, {0, 1, 2}, 0.1, cpu);
    EXPECT_FALSE(std::isnan(lse[0]) || std::isnan(lse[2]));
    EXPECT_TRUE(std::isnan(lse[1]));
  }
}

TYPED_TEST(RowLogSumExpTest, RefusesBadArguments) {
  using T = TypeParam;
  const auto z = unit_rows<T>(3, 4, 71);
  const Terms good{{1, 1, 1}, {1, 1, 1}};
  Matrix<T> out(3, 4), narrow(3, 3);
  expect_error([&] { run(z, z, {0, 1, 3}, 0.1); }, "self[2]: 3");
  expect_error([&] { run(z, z, {0, -2, 1}, 0.1); }, "self[1]: -2");
  expect_error([&] { run(z, z, {0, 1}, 0.1); }, "self");
  expect_error([&] { run(z, Matrix<T>(3, 5), {}, 0.1); }, "columns");
  expect_error([&] { run(Matrix<T>(3, 0), Matrix<T>(3, 0), {}, 0.1); }, "width");
  for (const double temperature : {0.0, -1.0, std::nan(""), kInfinity}) {
    expect_error([&] { run(z, z, {}, temperature); }, "temperature");
  }
  expect_error([&] { run_gradient(narrow, z, z, {}, good, good, {}); }, "out");
  expect_error([&] { run_gradient(out, z, z, {}, {{1, 1}, {1, 1, 1}}, good, {}); }, "row_terms: lse");
  expect_error([&] { run_gradient(out, z, z, {}, good, {{1, 1, 1}, {1, 1}}, {}); }, "column_terms: degrees");
  expect_error(
      [&] {
        run_gradient(out, z, z, {}, good, {{1, 1, 1}, {1, std::nan(""), 1}}, {});
      },
      "column_terms: degrees[1]");
  expect_error([&] { run_gradient(out, z, z, {}, good, good, {0.1, kInfinity, Into::add}); }, "scale");
  std::vector<double> lse(3), two(2);
  OwnScratch scratch(cpu::row_logsumexp_scratch_bytes<T>(3, 3, 4)),
      small(cpu::row_logsumexp_scratch_bytes<T>(3, 3, 4) - 1);
  OwnScratch less(cpu::row_logsumexp_gradient_scratch_bytes<T>(3, 3, 4) - 1);
  const MatrixView<const T> negative(z.data.data(), -1, 4);
  expect_error([&] { cpu::row_logsumexp<T>(span(two), z.view(), z.view(), {}, {}, scratch, Cpu{}); }, "lse");
  expect_error([&] { cpu::row_logsumexp<T>(span(lse), negative, z.view(), {}, {}, scratch, Cpu{}); },
               "rows negative size");
  expect_error([&] { cpu::row_logsumexp<T>(span(lse), z.view(), z.view(), {}, {}, scratch, Cpu{0}); }, "threads");
  expect_error([&] { cpu::row_logsumexp<T>(span(lse), z.view(), z.view(), {}, {}, small, Cpu{}); }, "scratch");
  expect_error(
      [&] {
        cpu::row_logsumexp_gradient<T>(out.view(), z.view(), z.view(), {}, good.view(), good.view(), {}, less, Cpu{});
      },
      "scratch");
}

TEST(RowLogSumExp, SizesAreCountedIn64Bits) {
  const int64_t rows = 1'300'000, dims = 8192;
  EXPECT_GE(cpu::row_logsumexp_scratch_bytes<float>(rows, rows, dims), 2 * 4 * rows * dims);
  EXPECT_LT(cpu::row_logsumexp_gradient_scratch_bytes<float>(rows, rows, dims), 4 * 4 * (rows + 100) * (dims + 100));
  // No rows × columns memory: the benchmark's case, against the dense matrix.
  EXPECT_LT(20 * cpu::row_logsumexp_gradient_scratch_bytes<float>(8192, 8192, 128), int64_t{2} * 8192 * 8192 * 4);
}

}  // namespace
}  // namespace pal::kernels
