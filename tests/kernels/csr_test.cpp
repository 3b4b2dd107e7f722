// csr: against a dense matrix filled pair by pair.
#include "kernels/csr.h"

#include <limits>

#include "tests/kernels/common.h"

namespace pal::kernels {
namespace {

template <class T>
struct Pairs {
  std::vector<int32_t> i, j;
  std::vector<T> w;
  PairsView<T> view() const { return {span(i), span(j), span(w)}; }
};

template <class T>
struct Csr {
  std::vector<int64_t> offsets;
  std::vector<int32_t> columns;
  std::vector<T> weights, degrees;
  int64_t nnz = -7;

  Csr(int64_t rows, int64_t pairs)
      : offsets(rows + 1, -1), columns(csr_capacity(pairs), -1), weights(csr_capacity(pairs)), degrees(rows, T{-1}) {}
  CsrOut<T> out() { return {span(offsets), span(columns), span(weights), span(degrees), &nnz}; }
};

template <class T>
Csr<T> build(const Pairs<T>& pairs, int64_t rows, Cpu cpu = {}) {
  Csr<T> c(rows, static_cast<int64_t>(pairs.i.size()));
  OwnScratch scratch(cpu::csr_scratch_bytes<T>(rows, static_cast<int64_t>(pairs.i.size())));
  cpu::csr(c.out(), pairs.view(), rows, scratch, cpu);
  return c;
}

template <class T>
class CsrTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(CsrTest, Types);

TYPED_TEST(CsrTest, EqualsTheDenseSum) {
  using T = TypeParam;
  const uint64_t seed = 11;
  SCOPED_TRACE("seed " + std::to_string(seed));
  const int64_t rows = 23, count = 400;  // many repeats, both directions, i = j
  Random random(seed, Purpose::bench);
  Pairs<T> pairs;
  std::vector<double> dense(rows * rows);
  for (int64_t p = 0; p < count; ++p) {
    const auto i = static_cast<int32_t>(random.below(rows)), j = static_cast<int32_t>(random.below(rows));
    const T w = static_cast<T>(random.normal());
    pairs.i.push_back(i);
    pairs.j.push_back(j);
    pairs.w.push_back(w);
    dense[i * rows + j] += static_cast<double>(w);
    if (i != j) dense[j * rows + i] += static_cast<double>(w);
  }
  for (const Cpu cpu : all_cpus()) {
    const Csr<T> c = build(pairs, rows, cpu);
    std::vector<double> got(rows * rows);
    EXPECT_EQ(c.nnz, c.offsets[rows]);
    for (int64_t r = 0; r < rows; ++r) {
      double degree = 0;
      for (int64_t e = c.offsets[r]; e < c.offsets[r + 1]; ++e) {
        if (e > c.offsets[r]) {
          EXPECT_LT(c.columns[e - 1], c.columns[e]) << "row " << r;
        }
        got[r * rows + c.columns[e]] = static_cast<double>(c.weights[e]);
        degree += std::abs(static_cast<double>(c.weights[e]));
      }
      EXPECT_EQ(c.degrees[r], static_cast<T>(degree)) << "row " << r;
    }
    for (int64_t e = 0; e < rows * rows; ++e) EXPECT_EQ(got[e], static_cast<double>(static_cast<T>(dense[e]))) << e;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t s = 0; s < rows; ++s) EXPECT_EQ(got[r * rows + s], got[s * rows + r]);
    }
  }
}

TYPED_TEST(CsrTest, RepeatsAreSummedInFp64AndRoundedOnce) {
  using T = TypeParam;
  // In float, 2^24 swallows each later 1; in fp64 none is lost.
  Pairs<T> pairs{{0}, {1}, {static_cast<T>(16777216.0)}};
  for (int p = 0; p < 10; ++p) {
    pairs.i.push_back(p % 2);
    pairs.j.push_back(1 - p % 2);
    pairs.w.push_back(T{1});
  }
  const Csr<T> c = build(pairs, 2);
  ASSERT_EQ(c.nnz, 2);
  EXPECT_EQ(c.weights[0], static_cast<T>(16777226.0));
  EXPECT_EQ(c.weights[1], static_cast<T>(16777226.0));
}

TYPED_TEST(CsrTest, NoWeightsMeansOnes) {
  const Csr<TypeParam> c = build(Pairs<TypeParam>{{0, 2, 2}, {1, 0, 2}, {}}, 4);
  ASSERT_EQ(c.nnz, 5);
  EXPECT_EQ(c.offsets, (std::vector<int64_t>{0, 2, 3, 5, 5}));
  EXPECT_EQ(std::vector<int32_t>(c.columns.begin(), c.columns.begin() + 5), (std::vector<int32_t>{1, 2, 0, 0, 2}));
  EXPECT_EQ(c.degrees, (std::vector<TypeParam>{2, 1, 2, 0}));
}

TYPED_TEST(CsrTest, EmptyPairsAndEmptyRows) {
  const Csr<TypeParam> none = build(Pairs<TypeParam>{}, 3);
  EXPECT_EQ(none.nnz, 0);
  EXPECT_EQ(none.offsets, (std::vector<int64_t>{0, 0, 0, 0}));
  EXPECT_EQ(none.degrees, (std::vector<TypeParam>{0, 0, 0}));
  EXPECT_EQ(build(Pairs<TypeParam>{}, 0).nnz, 0);
}

TYPED_TEST(CsrTest, OneRowWithAMillionPartners) {
  using T = TypeParam;
  const int64_t rows = 1'000'001;
  Pairs<T> pairs;
  for (int64_t p = rows - 1; p > 0; --p) {  // descending: the worst order for a sort that is fast on ascending input
    pairs.i.push_back(0);
    pairs.j.push_back(static_cast<int32_t>(p));
  }
  const Csr<T> c = build(pairs, rows);
  ASSERT_EQ(c.nnz, 2 * (rows - 1));
  EXPECT_EQ(c.offsets[1], rows - 1);
  EXPECT_EQ(c.degrees[0], static_cast<T>(rows - 1));
  for (int64_t e = 0; e < rows - 1; ++e) ASSERT_EQ(c.columns[e], e + 1);
}

// Enough pairs for a piece per thread; one row has half of them, many have none.
TYPED_TEST(CsrTest, TheSameForAnyThreads) {
  using T = TypeParam;
  const int64_t rows = 3000, count = 60'000;
  Random random(12, Purpose::bench);
  Pairs<T> pairs;
  for (int64_t p = 0; p < count; ++p) {
    pairs.i.push_back(p % 2 ? 77 : static_cast<int32_t>(random.below(rows / 2)));
    pairs.j.push_back(static_cast<int32_t>(random.below(rows / 2)));
    pairs.w.push_back(static_cast<T>(random.normal()));
  }
  const Csr<T> one = build(pairs, rows, Cpu{1});
  ASSERT_LT(one.nnz, 2 * count);  // repeats were merged
  for (const int threads : {2, 3, 4, 9}) {
    const Csr<T> many = build(pairs, rows, Cpu{threads});
    ASSERT_EQ(many.nnz, one.nnz) << threads;
    EXPECT_EQ(many.offsets, one.offsets) << threads;
    EXPECT_EQ(many.degrees, one.degrees) << threads;
    for (int64_t e = 0; e < one.nnz; ++e) {
      ASSERT_EQ(many.columns[e], one.columns[e]) << threads;
      ASSERT_EQ(many.weights[e], one.weights[e]) << threads;
    }
  }
}

TYPED_TEST(CsrTest, RefusesBadArguments) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  expect_error([] { build(Pairs<T>{{0, 3}, {1, 1}, {}}, 3); }, "csr: i[1]: 3");
  expect_error([] { build(Pairs<T>{{0, 1}, {1, -1}, {}}, 3); }, "csr: j[1]: -1");
  expect_error([=] { build(Pairs<T>{{0, 1}, {1, 2}, {T{1}, nan}}, 3); }, "csr: w[1]");
  expect_error([=] { build(Pairs<T>{{0, 1}, {1, 2}, {inf, T{1}}}, 3); }, "csr: w[0]");
  expect_error([] { build(Pairs<T>{{0, 1}, {1}, {}}, 3); }, "csr: j");
  expect_error([] { build(Pairs<T>{{0, 1}, {1, 2}, {T{1}}}, 3); }, "csr: w");

  const Pairs<T> good{{0, 1}, {1, 2}, {}};
  Csr<T> c(3, 2);
  OwnScratch scratch(cpu::csr_scratch_bytes<T>(3, 2)), small(cpu::csr_scratch_bytes<T>(3, 2) - 1);
  expect_error([&] { cpu::csr(c.out(), good.view(), 3, small, Cpu{}); }, "scratch");
  expect_error([&] { cpu::csr(c.out(), good.view(), -1, scratch, Cpu{}); }, "rows");
  expect_error([&] { cpu::csr(c.out(), good.view(), 4, scratch, Cpu{}); }, "offsets");
  expect_error([&] { cpu::csr(c.out(), good.view(), 3, scratch, Cpu{0}); }, "threads");
  c.columns.resize(3);
  expect_error([&] { cpu::csr(c.out(), good.view(), 3, scratch, Cpu{}); }, "columns");
  EXPECT_EQ(c.nnz, -7) << "an argument was refused after work had begun";
}

}  // namespace
}  // namespace pal::kernels
