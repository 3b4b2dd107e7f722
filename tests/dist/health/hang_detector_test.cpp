// hang_detector: who is blamed for a standstill, by heartbeats alone; which processes want to run; which faults are asked for.
#include "dist/health/hang_detector.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>

#include "dist/health/faults.h"
#include "dist/health/local_ranks.h"
#include "kernels/base/error.h"
#include "tests/dist/mpi_world.h"

namespace pal::dist {
namespace {

std::vector<PeerState> calm(int ranks) {
  std::vector<PeerState> heard(ranks);
  for (PeerState& h : heard) {
    h.beat.step = 7;
    h.beat.number = {10, 5, 3, 1};
    h.beat.waiting_ms = {-1, -1, -1, -1};
  }
  return heard;
}

TEST(Judge, LeavesWorkingRanksAlone) {
  std::vector<PeerState> heard = calm(4);
  EXPECT_FALSE(find_stalled_ranks(heard, 0, {}));
  heard[2].silent_s = 9.9;
  heard[1].beat.number[0] = 11;  // waits, not for long
  heard[1].beat.waiting_ms[0] = 9900;
  EXPECT_FALSE(find_stalled_ranks(heard, 0, {}));
  EXPECT_TRUE(find_stalled_ranks(heard, 0, {.silence_s = 9}));
  EXPECT_TRUE(find_stalled_ranks(heard, 0, {.waiting_s = 9}));
}

TEST(Judge, IsPatientWithTheStarved) {
  std::vector<PeerState> heard = calm(3);
  heard[2].silent_s = 30;
  heard[2].starved = true;
  for (const int r : {0, 1}) {  // and wait for it
    heard[r].beat.number[0] = 11;
    heard[r].beat.waiting_ms[0] = 30000;
  }
  EXPECT_FALSE(find_stalled_ranks(heard, 0, {}));
  EXPECT_EQ(find_stalled_ranks(heard, 0, {.starved_s = 29})
                ->find("rank 2 gave no sign of life for 30.0 s, last at step 7; other processes take its core"),
            0u);
  for (const int r : {0, 1}) heard[r].beat.waiting_ms[0] = 61000;  // patience ends
  EXPECT_EQ(find_stalled_ranks(heard, 0, {})->find("rank 2 did not come to collective 11 of 'now', where others wait for 61.0 s"),
            0u);
  for (const int r : {0, 1}) heard[r].beat.waiting_ms[0] = 30000;
  heard[1].beat.number[0] = 10;  // another one is missing, too, and not for want of a core
  heard[1].beat.waiting_ms[0] = -1;
  heard[2].starved = false;
  heard[2].silent_s = 1;
  EXPECT_EQ(find_stalled_ranks(heard, 0, {})->find("ranks 1, 2 did not come to collective 11 of 'now'"), 0u);
}

// A process that computes, one that sleeps, and one that computed and is stopped.
TEST(LocalRanks, TellTheBusyFromTheStopped) {
  const auto child = [](bool busy) {
    const pid_t pid = fork();
    std::atomic<int64_t> turns = 0;  // a loop without an effect may be left out
    while (pid == 0) {
      ++turns;
      if (!busy) pause();
    }
    return pid;
  };
  const pid_t busy = child(true), idle = child(false);
  const auto within = [](const std::function<bool()>& holds) {
    for (int k = 0; k < 1000; ++k) {
      if (holds()) return true;
      usleep(10000);
    }
    return false;
  };
  EXPECT_TRUE(within([&] { return wants_to_run(busy); }));
  EXPECT_TRUE(within([&] { return !wants_to_run(idle); }));
  kill(busy, SIGSTOP);
  EXPECT_TRUE(within([&] { return !wants_to_run(busy); }));
  for (const pid_t pid : {busy, idle}) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    EXPECT_FALSE(wants_to_run(pid));
  }
  EXPECT_TRUE(LocalRanks(MPI_COMM_WORLD).wants_to_run(test_world().rank())) << "this process itself";
}

TEST(Judge, NamesTheSilent) {
  std::vector<PeerState> heard = calm(4);
  heard[2].silent_s = heard[3].silent_s = 10.5;
  EXPECT_EQ(find_stalled_ranks(heard, 0, {})->find("ranks 2, 3 gave no sign of life for 10.5 s, last at step 7"), 0u);
  EXPECT_FALSE(find_stalled_ranks(heard, 1, {}));  // hears rank 0 alone
  heard[0].silent_s = 11;
  EXPECT_EQ(find_stalled_ranks(heard, 1, {})->find("rank 0 gave no sign"), 0u);
}

TEST(Judge, NamesWhoDidNotCome) {
  std::vector<PeerState> heard = calm(3);
  for (const int r : {0, 2}) {
    heard[r].beat.number[1] = 6;
    heard[r].beat.waiting_ms[1] = 12000;
  }
  EXPECT_EQ(find_stalled_ranks(heard, 0, {})->find("rank 1 did not come to collective 6 of 'bulk', where others wait for 12.0 s"),
            0u);
  EXPECT_FALSE(find_stalled_ranks(heard, 2, {}));
  heard[1].beat.number[1] = 6;
  heard[1].beat.waiting_ms[1] = 200;
  EXPECT_FALSE(find_stalled_ranks(heard, 0, {})) << "it has just come: the others waited for it";
  heard[1].beat.waiting_ms[1] = -1;
  EXPECT_FALSE(find_stalled_ranks(heard, 0, {})) << "it has already left";
  heard[1].beat.waiting_ms[1] = 11000;
  EXPECT_NE(find_stalled_ranks(heard, 0, {})->find("all ranks are in it, for 11.0 s"), std::string::npos);
}

TEST(Judge, ReadsFaults) {
  const std::vector<Fault> faults = parse_faults("kill:1:20,nan:0:3-5:always");
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[1].last, 5);
  Faults first(faults, 1, 0), again(faults, 1, 1), always(faults, 0, 2);
  EXPECT_TRUE(first.strikes(FaultKind::kill, 20));
  EXPECT_FALSE(first.strikes(FaultKind::kill, 20));
  EXPECT_FALSE(again.strikes(FaultKind::kill, 20));
  for (int time = 0; time < 2; ++time) EXPECT_TRUE(always.strikes(FaultKind::nan, 4));
  EXPECT_FALSE(always.strikes(FaultKind::nan, 6));
  for (const char* bad : {"kill", "melt:0:1", "kill:a:1", "kill:0:-1", "kill:0:1:never", "kill:0:"})
    EXPECT_THROW(parse_faults(bad), Error) << bad;
}

}  // namespace
}  // namespace pal::dist
