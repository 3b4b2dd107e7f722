// philox: known answers of the reference implementation, and the streams' independence of order.
#include "kernels/base/philox.h"

#include <gtest/gtest.h>

namespace pal {
namespace {

TEST(Philox, KnownAnswers) {
  const Philox4 zero = philox4x32_10(0, 0, 0, 0, 0, 0);
  EXPECT_EQ(zero.w[0], 0x6627e8d5u);
  EXPECT_EQ(zero.w[1], 0xe169c58du);
  EXPECT_EQ(zero.w[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.w[3], 0x9b00dbd8u);
  const Philox4 ones = philox4x32_10(~0u, ~0u, ~0u, ~0u, ~0u, ~0u);
  EXPECT_EQ(ones.w[0], 0x408f276du);
  EXPECT_EQ(ones.w[1], 0x41c83b0eu);
  EXPECT_EQ(ones.w[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.w[3], 0x6d5451fdu);
}

TEST(Philox, StreamsDifferInEveryCoordinate) {
  const auto first = [](Random r) { return r.next_u64(); };
  const uint64_t base = first(Random(1, Purpose::augment, 2, 3, 4));
  EXPECT_EQ(base, first(Random(1, Purpose::augment, 2, 3, 4)));
  EXPECT_NE(base, first(Random(2, Purpose::augment, 2, 3, 4)));
  EXPECT_NE(base, first(Random(1, Purpose::shuffle, 2, 3, 4)));
  EXPECT_NE(base, first(Random(1, Purpose::augment, 3, 3, 4)));
  EXPECT_NE(base, first(Random(1, Purpose::augment, 2, 4, 4)));
  EXPECT_NE(base, first(Random(1, Purpose::augment, 2, 3, 5)));
  EXPECT_NE(base, first(Random(1, Purpose::augment, 2, 3 + (1ull << 32), 4)));
}

TEST(Philox, UniformMoments) {
  Random r(7, Purpose::bench);
  double sum = 0, square = 0;
  const int n = 200000;
  for (int i = 0; i < n; ++i) {
    const double x = r.normal();
    sum += x;
    square += x * x;
  }
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(square / n, 1, 0.02);
}

}  // namespace
}  // namespace pal
