// supervise_test: which ends are followed by a restart, with how many ranks, and when it stops.
#include "launch/process/supervise.h"

#include <gtest/gtest.h>

namespace pal::launch {
namespace {

TEST(Restarts, ErrorsThatARestartCannotFixEndTheRun) {
  for (const int code : {0, 1, 2, 3, 4, 70, 75, 76}) {
    const auto d = Restarts({}, 2, -1).after(code, 5);
    EXPECT_EQ(d.ranks, 0) << code;
    EXPECT_EQ(d.code, code);
    EXPECT_EQ(d.reason, "");
  }
  for (const int code : {71, 137, 139}) EXPECT_EQ(Restarts({}, 2, -1).after(code, 5).ranks, 2) << code;
}

TEST(Restarts, ThreeWithoutProgressStop) {
  Restarts r({.max_restarts = 100}, 4, 10);
  for (int k = 0; k < 3; ++k) EXPECT_EQ(r.after(137, 10).ranks, 4);
  const auto d = r.after(137, 10);
  EXPECT_EQ(d.ranks, 0);
  EXPECT_EQ(d.code, 76);
  EXPECT_NE(d.reason.find("step-10"), std::string::npos) << d.reason;
}

TEST(Restarts, ProgressResetsTheCount) {
  Restarts r({.max_restarts = 100}, 4, -1);
  for (int64_t step = 0; step < 20; ++step) {
    EXPECT_EQ(r.after(137, step).ranks, 4);
    EXPECT_EQ(r.after(137, step).ranks, 4);
  }
}

TEST(Restarts, TheirNumberIsLimited) {
  Restarts r({.max_restarts = 2}, 4, -1);
  EXPECT_EQ(r.after(137, 1).ranks, 4);
  EXPECT_EQ(r.after(71, 2).ranks, 4);
  const auto d = r.after(137, 3);
  EXPECT_EQ(d.ranks, 0);
  EXPECT_EQ(d.code, 137);  // it made progress: another start may
  EXPECT_EQ(Restarts({.max_restarts = 0}, 4, -1).after(137, 3).code, 137);
}

TEST(Restarts, FewerRanksAfterARestartWithoutProgress) {
  Restarts r({.max_restarts = 100, .min_ranks = 2}, 4, 10);
  EXPECT_EQ(r.after(137, 10).ranks, 4);  // once with all of them
  EXPECT_EQ(r.after(137, 10).ranks, 3);
  EXPECT_EQ(r.after(137, 20).ranks, 3);  // got on: stays
  EXPECT_EQ(r.after(137, 20).ranks, 2);
  EXPECT_EQ(r.after(137, 20).ranks, 2);  // not below
}

}  // namespace
}  // namespace pal::launch
