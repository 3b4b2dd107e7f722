// block_terms: against the dense graph M B Mᵀ, pair by pair in double precision.
#include "kernels/block_terms.h"

#include <limits>

#include "tests/kernels/common.h"

namespace pal::kernels {
namespace {

std::vector<int32_t> random_blocks(int64_t rows, int32_t blocks, uint64_t seed) {
  Random random(seed, Purpose::bench);
  std::vector<int32_t> b;
  for (int64_t i = 0; i < rows; ++i) b.push_back(static_cast<int32_t>(random.below(blocks + 1)) - 1);  // −1: none
  return b;
}

template <class T>
Matrix<double> sums_of(const Matrix<T>& z, const std::vector<int32_t>& block, int32_t blocks, Cpu cpu = {}) {
  Matrix<double> sums(blocks, z.cols, 1);
  sums.fill(7.0);  // the earlier content must have no effect
  OwnScratch scratch(cpu::block_sums_scratch_bytes(z.rows, blocks, z.cols));
  cpu::block_sums<T>(sums.view(), z.view(), span(block), scratch, cpu);
  return sums;
}

template <class T>
class BlockTermsTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(BlockTermsTest, Types);

TYPED_TEST(BlockTermsTest, GZThroughATableEqualsTheDenseProduct) {
  using T = TypeParam;
  const uint64_t seed = 101;
  SCOPED_TRACE("seed " + std::to_string(seed));
  const int32_t blocks = 5;
  for (const int64_t dims : {1, 3, 8, 16, 31, 130, 300}) {
    const auto z = random_matrix<T>(37, dims, seed, 2);
    const auto block = random_blocks(37, blocks, seed + 1);
    auto table = random_matrix<double>(blocks, blocks, seed + 2, 1);
    for (int p = 0; p < blocks; ++p) {
      for (int q = 0; q < p; ++q) table.at(p, q) = table.at(q, p);
    }
    table.at(2, 2) = 0;
    Matrix<double> expected(37, dims);
    expected.fill(0.5);
    for (int64_t i = 0; i < 37; ++i) {
      for (int64_t j = 0; j < 37; ++j) {
        if (block[i] < 0 || block[j] < 0) continue;
        for (int64_t k = 0; k < dims; ++k) expected.at(i, k) += -2.0 * table.at(block[i], block[j]) * z.get(j, k);
      }
    }
    for (const Cpu cpu : all_cpus()) {
      SCOPED_TRACE(describe(cpu) + ", D " + std::to_string(dims));
      const auto sums = sums_of(z, block, blocks, cpu);
      Matrix<double> mixed(blocks, dims);
      cpu::block_table(mixed.view(), table.view(), sums.view(), cpu);
      Matrix<T> out(37, dims, 3);
      out.fill(static_cast<T>(0.5));
      cpu::block_rows<T>(out.view(), mixed.view(), span(block), -2.0, Into::add, cpu);
      EXPECT_LT(relative_error(out, expected), tolerance<T>(1e-7, 1e-14));
      cpu::block_rows<T>(out.view(), mixed.view(), span(block), -2.0, Into::overwrite, cpu);
      for (int64_t i = 0; i < 37; ++i) {
        EXPECT_NEAR(static_cast<double>(out.at(i, 0)), expected.at(i, 0) - 0.5, tolerance<T>(1e-5, 1e-12)) << i;
      }
    }
  }
}

TYPED_TEST(BlockTermsTest, SumsAddUpOverRanksAndKeepTheirBitsForAnyThreads) {
  using T = TypeParam;
  const auto z = random_matrix<T>(64, 200, 111);
  const auto block = random_blocks(64, 9, 112);
  const auto all = sums_of(z, block, 9);
  for (const int threads : {2, 3}) {
    const auto again = sums_of(z, block, 9, Cpu{threads});
    for (int64_t b = 0; b < 9; ++b) {
      for (int64_t k = 0; k < 200; ++k) EXPECT_EQ(again.at(b, k), all.at(b, k));
    }
  }
  Matrix<T> head(20, 200), tail(44, 200);
  std::copy_n(z.data.begin(), 20 * 200, head.data.begin());
  std::copy_n(z.data.begin() + 20 * 200, 44 * 200, tail.data.begin());
  const auto first = sums_of(head, {block.begin(), block.begin() + 20}, 9);
  const auto second = sums_of(tail, {block.begin() + 20, block.end()}, 9);
  for (int64_t b = 0; b < 9; ++b) {
    for (int64_t k = 0; k < 200; ++k) EXPECT_NEAR(first.at(b, k) + second.at(b, k), all.at(b, k), 1e-13);
  }
}

// Σ_c w_c Σ_{i,j ∈ c} ‖z_i − z_j‖² and its gradient, for close pairs, far means, and both.
TYPED_TEST(BlockTermsTest, DifferencesEqualTheCliquesPairByPair) {
  using T = TypeParam;
  const int32_t blocks = 4;
  const int64_t rows = 30;
  for (const double mean : {0.0, 1e4}) {
    for (const int64_t dims : {1, 5, 16, 67}) {
      const auto z = random_matrix<T>(rows, dims, 121, 2, mean, mean == 0 ? 1e-3 : 1.0);
      const auto block = random_blocks(rows, blocks, 122);
      const std::vector<double> weight = {1.0, -0.5, 0.25, 2.0};
      std::vector<double> size(blocks), pair_weight(blocks);
      for (const int32_t b : block) {
        if (b >= 0) ++size[b];
      }
      double value = 0, absolute = 0;
      Matrix<double> gradient(rows, dims);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < rows; ++j) {
          if (block[i] < 0 || block[i] != block[j]) continue;
          for (int64_t k = 0; k < dims; ++k) {
            const double d = z.get(i, k) - z.get(j, k);
            value += weight[block[i]] * d * d;
            absolute += std::abs(weight[block[i]]) * d * d;
            gradient.at(i, k) += 4 * weight[block[i]] * d;
          }
        }
      }
      for (const Cpu cpu : all_cpus()) {
        SCOPED_TRACE(describe(cpu) + ", D " + std::to_string(dims) + ", mean " + std::to_string(mean));
        auto means = sums_of(z, block, blocks, cpu);
        for (int b = 0; b < blocks; ++b) {
          pair_weight[b] = weight[b] * size[b];
          for (int64_t k = 0; k < dims; ++k) means.at(b, k) /= std::max(1.0, size[b]);
        }
        OwnScratch scratch(cpu::block_differences_scratch_bytes(rows));
        Matrix<T> out(rows, dims, 1);
        double got = -1;
        cpu::block_differences<T>(out.view(), &got, z.view(), means.view(), span(pair_weight), span(block), 4.0,
                                  Into::overwrite, scratch, cpu);
        EXPECT_NEAR(got, value, 1e-9 * absolute);
        EXPECT_LT(relative_error(out, gradient), tolerance<T>(1e-7, 1e-11));
        cpu::block_differences<T>(out.view(), nullptr, z.view(), means.view(), span(pair_weight), span(block), -8.0,
                                  Into::add, scratch, cpu);
        Matrix<double> negative(rows, dims);
        for (size_t e = 0; e < gradient.data.size(); ++e) negative.data[e] = -gradient.data[e];
        EXPECT_LT(relative_error(out, negative), tolerance<T>(2e-7, 1e-11));
        double only = -1;
        cpu::block_differences<T>({}, &only, z.view(), means.view(), span(pair_weight), span(block), 1.0, Into::add,
                                  scratch, cpu);
        EXPECT_EQ(only, got);
      }
    }
  }
}

// Σ_ij G_ij ‖z_i − z_j‖² and its gradient for G = M B Mᵀ with a table of both signs: rows whose weights cancel (degree
// 0), blocks without members, close pairs and far means.
TYPED_TEST(BlockTermsTest, DifferencesOfASignedTableEqualTheDenseGraph) {
  using T = TypeParam;
  const int32_t blocks = 4;
  const int64_t rows = 26;
  for (const double mean : {0.0, 1e4}) {
    for (const int64_t dims : {1, 5, 16, 67}) {
      const auto z = random_matrix<T>(rows, dims, 141, 2, mean, mean == 0 ? 1e-3 : 1.0);
      std::vector<int32_t> block = random_blocks(rows, blocks - 1, 142);  // the last block has no members
      std::vector<double> members(blocks);
      for (const int32_t b : block) {
        if (b >= 0) ++members[b];
      }
      Matrix<double> table(blocks, blocks, 1);  // ±1, and a row of degree 0
      for (int p = 0; p < blocks; ++p) {
        for (int q = 0; q < blocks; ++q) table.at(p, q) = p == q ? 1 : -1;
      }
      table.at(0, 0) = (members[1] + members[2]) / members[0];
      double value = 0, absolute = 0;
      Matrix<double> gradient(rows, dims);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < rows; ++j) {
          if (block[i] < 0 || block[j] < 0) continue;
          const double w = table.at(block[i], block[j]);
          for (int64_t k = 0; k < dims; ++k) {
            const double d = z.get(i, k) - z.get(j, k);
            value += w * d * d;
            absolute += std::abs(w) * d * d;
            gradient.at(i, k) += 4 * w * d;
          }
        }
      }
      for (const Cpu cpu : all_cpus()) {
        SCOPED_TRACE(describe(cpu) + ", D " + std::to_string(dims) + ", mean " + std::to_string(mean));
        auto means = sums_of(z, block, blocks, cpu);
        for (int b = 0; b < blocks; ++b) {
          for (int64_t k = 0; k < dims; ++k)
            means.at(b, k) = members[b] > 0 ? means.at(b, k) / members[b] : std::nan("");
        }
        Matrix<double> between(blocks, dims, 1);
        std::vector<double> pair_weight(blocks);
        double inside = -1, outside = -1;
        OwnScratch first(cpu::block_between_scratch_bytes(blocks)), second(cpu::block_differences_scratch_bytes(rows));
        cpu::block_between(between.view(), span(pair_weight), &outside, table.view(), std::as_const(means).view(),
                           span(std::as_const(members)), first, cpu);
        EXPECT_EQ(pair_weight[0], 0);
        Matrix<T> out(rows, dims, 1);
        cpu::block_differences<T>(out.view(), &inside, z.view(), std::as_const(means).view(),
                                  span(std::as_const(pair_weight)), span(block), 4.0, Into::overwrite, second, cpu);
        cpu::block_rows<T>(out.view(), std::as_const(between).view(), span(block), 4.0, Into::add, cpu);
        EXPECT_NEAR(inside + outside, value, 1e-9 * absolute);
        EXPECT_LT(relative_error(out, gradient), tolerance<T>(2e-7, 1e-11));
      }
    }
  }
}

TYPED_TEST(BlockTermsTest, RefusesBadArguments) {
  using T = TypeParam;
  const auto z = random_matrix<T>(3, 4, 131);
  const std::vector<int32_t> block = {0, -1, 1}, high = {0, 2, 1}, low = {0, -2, 1}, few = {0, 1};
  expect_error([&] { sums_of(z, high, 2); }, "row_block[1]: 2");
  expect_error([&] { sums_of(z, low, 2); }, "row_block[1]: -2");
  expect_error([&] { sums_of(z, few, 2); }, "row_block");
  Matrix<double> sums(2, 4), wide(2, 5), table(2, 2), bad(2, 2);
  bad.at(1, 0) = std::numeric_limits<double>::quiet_NaN();
  Matrix<T> out(3, 4);
  expect_error([&] { cpu::block_rows<T>(out.view(), sums.view(), span(high), 1.0, Into::add, Cpu{}); },
               "row_block[1]: 2");
  expect_error([&] { cpu::block_rows<T>(out.view(), wide.view(), span(block), 1.0, Into::add, Cpu{}); }, "per_block");
  expect_error([&] { cpu::block_table(sums.view(), table.view(), sums.view(), Cpu{}); }, "out");
  expect_error([&] { cpu::block_table(wide.view(), table.view(), sums.view(), Cpu{}); }, "out");
  Matrix<double> mixed(2, 4);
  expect_error([&] { cpu::block_table(mixed.view(), bad.view(), sums.view(), Cpu{}); }, "table");
  OwnScratch one(cpu::block_between_scratch_bytes(2)), little(8);
  std::vector<double> pair_weight(2), short_weight(1);
  const std::vector<double> members = {2, 1};
  const auto between = [&](std::vector<double>& w, const Matrix<double>& b, Scratch s) {
    cpu::block_between(mixed.view(), span(w), nullptr, b.view(), std::as_const(sums).view(), span(members), s, Cpu{});
  };
  expect_error([&] { between(pair_weight, bad, one); }, "table[0]");
  expect_error([&] { between(short_weight, table, one); }, "pair_weight");
  expect_error([&] { between(pair_weight, table, little); }, "scratch");
  const std::vector<double> weight = {1, 1}, nan = {1, std::numeric_limits<double>::quiet_NaN()};
  OwnScratch scratch(cpu::block_differences_scratch_bytes(3)), small(8);
  const auto differences = [&](const std::vector<double>& w, Scratch s) {
    cpu::block_differences<T>(out.view(), nullptr, z.view(), sums.view(), span(w), span(block), 1.0, Into::add, s,
                              Cpu{});
  };
  expect_error([&] { differences(nan, scratch); }, "pair_weight[1]");
  expect_error([&] { differences({1}, scratch); }, "pair_weight");
  expect_error([&] { differences(weight, small); }, "scratch");
}

}  // namespace
}  // namespace pal::kernels
