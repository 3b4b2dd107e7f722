// hang_detector: which ranks are stalled, from heartbeats alone; which processes are runnable; which faults are parsed.
#include "dist/health/hang_detector.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>

#include "dist/health/faults.h"
#include "kernels/base/error.h"
#include "tests/dist/mpi_world.h"

namespace pal::dist {
namespace {

std::vector<PeerState> calm(int ranks) {
  std::vector<PeerState> peers(ranks);
  for (PeerState& p : peers) {
    p.heartbeat.step = 7;
    p.heartbeat.number = {10, 5, 3, 1};
    p.heartbeat.waiting_ms = {-1, -1, -1, -1};
  }
  return peers;
}

TEST(HangDetector, LeavesWorkingRanksAlone) {
  std::vector<PeerState> peers = calm(4);
  EXPECT_FALSE(find_stalled_ranks(peers, 0, {}));
  peers[2].silent_s = 9.9;
  peers[1].heartbeat.number[0] = 11;  // waits, not for long
  peers[1].heartbeat.waiting_ms[0] = 9900;
  EXPECT_FALSE(find_stalled_ranks(peers, 0, {}));
  EXPECT_TRUE(find_stalled_ranks(peers, 0, {.silence_s = 9}));
  EXPECT_TRUE(find_stalled_ranks(peers, 0, {.waiting_s = 9}));
}

TEST(HangDetector, GivesStarvedRanksMoreTime) {
  std::vector<PeerState> peers = calm(3);
  peers[2].silent_s = 30;
  peers[2].starved = true;
  for (const int r : {0, 1}) {  // they wait for rank 2
    peers[r].heartbeat.number[0] = 11;
    peers[r].heartbeat.waiting_ms[0] = 30000;
  }
  EXPECT_FALSE(find_stalled_ranks(peers, 0, {}));
  EXPECT_EQ(
      find_stalled_ranks(peers, 0, {.starved_s = 29})
          ->find("rank 2 sent no heartbeat for 30.0 s, last at step 7; the process is runnable but has had no CPU"),
      0u);
  for (const int r : {0, 1}) peers[r].heartbeat.waiting_ms[0] = 61000;  // longer than starved_s
  EXPECT_EQ(find_stalled_ranks(peers, 0, {})
                ->find("rank 2 has not reached collective 11 of 'now', in which other ranks have waited for 61.0 s"),
            0u);
  for (const int r : {0, 1}) peers[r].heartbeat.waiting_ms[0] = 30000;
  peers[1].heartbeat.number[0] = 10;  // rank 1 is missing too, and is not starved
  peers[1].heartbeat.waiting_ms[0] = -1;
  peers[2].starved = false;
  peers[2].silent_s = 1;
  EXPECT_EQ(find_stalled_ranks(peers, 0, {})->find("ranks 1, 2 have not reached collective 11 of 'now'"), 0u);
}

// A process that computes, one that sleeps, and one that computed and is stopped.
TEST(LocalRanks, DistinguishRunnableFromStopped) {
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
  EXPECT_TRUE(within([&] { return is_runnable(busy); }));
  EXPECT_TRUE(within([&] { return !is_runnable(idle); }));
  kill(busy, SIGSTOP);
  EXPECT_TRUE(within([&] { return !is_runnable(busy); }));
  for (const pid_t pid : {busy, idle}) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    EXPECT_FALSE(is_runnable(pid));
  }
  EXPECT_TRUE(LocalRanks(MPI_COMM_WORLD).is_runnable(test_world().rank())) << "this process itself";
}

TEST(HangDetector, NamesSilentRanks) {
  std::vector<PeerState> peers = calm(4);
  peers[2].silent_s = peers[3].silent_s = 10.5;
  EXPECT_EQ(find_stalled_ranks(peers, 0, {})->find("ranks 2, 3 sent no heartbeat for 10.5 s, last at step 7"), 0u);
  EXPECT_FALSE(find_stalled_ranks(peers, 1, {}));  // judges only rank 0
  peers[0].silent_s = 11;
  EXPECT_EQ(find_stalled_ranks(peers, 1, {})->find("rank 0 sent no heartbeat"), 0u);
}

TEST(HangDetector, NamesMissingRanks) {
  std::vector<PeerState> peers = calm(3);
  for (const int r : {0, 2}) {
    peers[r].heartbeat.number[1] = 6;
    peers[r].heartbeat.waiting_ms[1] = 12000;
  }
  EXPECT_EQ(find_stalled_ranks(peers, 0, {})
                ->find("rank 1 has not reached collective 6 of 'bulk', in which other ranks have waited for 12.0 s"),
            0u);
  EXPECT_FALSE(find_stalled_ranks(peers, 2, {}));
  peers[1].heartbeat.number[1] = 6;
  peers[1].heartbeat.waiting_ms[1] = 200;
  EXPECT_FALSE(find_stalled_ranks(peers, 0, {})) << "it has just arrived: the others waited for it";
  peers[1].heartbeat.waiting_ms[1] = -1;
  EXPECT_FALSE(find_stalled_ranks(peers, 0, {})) << "it has already returned";
  peers[1].heartbeat.waiting_ms[1] = 11000;
  EXPECT_NE(find_stalled_ranks(peers, 0, {})->find("has not ended for 11.0 s, although all ranks are in it"),
            std::string::npos);
}

TEST(Faults, AreParsed) {
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
