// rank_slices: the slices cover everything, and their sizes differ by at most one.
#include "core/comm/rank_slices.h"

#include <gtest/gtest.h>

namespace pal::comm {
namespace {

TEST(RankSlices, DifferByAtMostOne) {
  EXPECT_EQ(rank_slices(10, 3), (std::vector<int64_t>{0, 4, 7, 10}));
  EXPECT_EQ(rank_slices(2, 4), (std::vector<int64_t>{0, 1, 2, 2, 2}));
  EXPECT_EQ(rank_slices(0, 2), (std::vector<int64_t>{0, 0, 0}));
  for (const int64_t n : {1, 255, 256, 1281167}) {
    for (int w = 1; w <= 17; ++w) {
      const auto begin = rank_slices(n, w);
      EXPECT_EQ(begin.front(), 0);
      EXPECT_EQ(begin.back(), n);
      for (int r = 0; r < w; ++r) {
        EXPECT_GE(begin[r + 1] - begin[r], n / w);
        EXPECT_LE(begin[r + 1] - begin[r], n / w + 1);
      }
    }
  }
}

}  // namespace
}  // namespace pal::comm
