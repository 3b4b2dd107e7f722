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

bool hung(const std::vector<PeerState>& peers, int self = 0, const HangLimits& limits = {}) {
  const auto stall = find_stalled_ranks(peers, self, limits);
  return stall && stall->hung;
}
std::string sentence(const std::vector<PeerState>& peers, int self = 0, const HangLimits& limits = {}) {
  const auto stall = find_stalled_ranks(peers, self, limits);
  return stall ? stall->sentence : "";
}
// The rank is in collective `number` of communicator c.
void enter(PeerState& peer, size_t c, int64_t number, int64_t waiting_ms) {
  peer.heartbeat.number[c] = number;
  peer.heartbeat.waiting_ms[c] = waiting_ms;
}

TEST(HangDetector, LeavesWorkingRanksAlone) {
  std::vector<PeerState> peers = calm(4);
  EXPECT_FALSE(find_stalled_ranks(peers, 0, {}));
  peers[2].silent_s = peers[2].idle_s = 9.9;
  enter(peers[1], 0, 11, 9900);  // waits, not for long
  EXPECT_FALSE(find_stalled_ranks(peers, 0, {}));
  EXPECT_TRUE(hung(peers, 0, {.silence_s = 9}));
  EXPECT_TRUE(find_stalled_ranks(peers, 0, {.waiting_s = 9}));
}

// Ranks 0 and 1 wait for rank 2, which is silent because it gets no CPU.
TEST(HangDetector, WaitsForARankWithoutCpu) {
  std::vector<PeerState> peers = calm(3);
  peers[2].silent_s = 30;
  for (const int r : {0, 1}) enter(peers[r], 0, 11, 30000);
  EXPECT_EQ(sentence(peers).find("rank 2 sent no heartbeat for 30.0 s, last at step 7; the process is runnable but"),
            0u);
  EXPECT_FALSE(hung(peers));
  EXPECT_FALSE(hung(peers, 1)) << "rank 1 watches rank 0 only";
  EXPECT_TRUE(hung(peers, 0, {.hang_s = 29}));
  peers[2].idle_s = 10.1;  // and is not runnable
  EXPECT_TRUE(hung(peers));
  EXPECT_NE(sentence(peers).find("the process is stopped, or its host is unreachable"), std::string::npos);
}

TEST(HangDetector, WaitsForARankThatWorks) {
  std::vector<PeerState> peers = calm(3);
  for (const int r : {0, 1}) enter(peers[r], 0, 11, 61000);
  EXPECT_EQ(sentence(peers).find(
                "rank 2 has not reached collective 11 of 'now', in which other ranks have waited for 61.0 s"),
            0u);
  EXPECT_FALSE(hung(peers)) << "it computes, reads or loads";
  for (const int r : {0, 1}) peers[r].heartbeat.waiting_ms[0] = 601000;
  EXPECT_TRUE(hung(peers)) << "for longer than hang_s";
  for (const int r : {0, 1}) peers[r].heartbeat.waiting_ms[0] = 11000;
  peers[2].idle_s = 11;
  EXPECT_TRUE(hung(peers)) << "it sleeps";
  peers[2].idle_s = 0;
  enter(peers[2], 1, 6, 11000);
  EXPECT_FALSE(hung(peers)) << "its gradient thread waits, its training thread works";
  enter(peers[2], 2, 3, 11000);
  EXPECT_FALSE(hung(peers)) << "all ranks have reached that collective: it is about to return";
  enter(peers[2], 2, 4, 11000);
  EXPECT_TRUE(hung(peers)) << "a deadlock: it waits for the ranks that wait for it";
}

// Of two silent ranks, the one that is stopped is named.
TEST(HangDetector, NamesTheStoppedRank) {
  std::vector<PeerState> peers = calm(3);
  peers[1].silent_s = peers[2].silent_s = 12;
  peers[2].idle_s = 12;
  EXPECT_TRUE(hung(peers));
  EXPECT_EQ(sentence(peers).find("rank 2 sent no heartbeat"), 0u);
}

void compute() {
  for (std::atomic<int64_t> turns = 0;;) ++turns;  // a loop without an effect may be left out
}
void sleep_forever() {
  for (;;) pause();
}
// The parent of vfork waits without interruption, as for storage, until its child ends.
void wait_uninterrupted() {
  if (vfork() == 0) sleep_forever();
}

// Processes that compute, sleep, wait without interruption, and one that computed and is stopped.
TEST(LocalRanks, DistinguishWorkingFromStoppedProcesses) {
  const auto child = [](void (*what)()) {
    const pid_t pid = fork();
    if (pid == 0) {
      setpgid(0, 0);
      what();
    }
    return pid;
  };
  const pid_t busy = child(compute), idle = child(sleep_forever), storage = child(wait_uninterrupted);
  const auto within = [](const std::function<bool()>& holds) {
    for (int k = 0; k < 1000; ++k) {
      if (holds()) return true;
      usleep(10000);
    }
    return false;
  };
  EXPECT_TRUE(within([&] { return is_working(busy); }));
  EXPECT_FALSE(is_working(busy, busy)) << "its only thread is the one left out";
  EXPECT_TRUE(within([&] { return !is_working(idle); }));
  EXPECT_TRUE(within([&] { return is_working(storage); }));
  kill(busy, SIGSTOP);
  EXPECT_TRUE(within([&] { return !is_working(busy); }));
  for (const pid_t pid : {busy, idle, storage}) {
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    EXPECT_FALSE(is_working(pid));
  }
  EXPECT_TRUE(LocalRanks(MPI_COMM_WORLD).works(test_world().rank())) << "this process itself";
}

TEST(HangDetector, NamesSilentRanks) {
  std::vector<PeerState> peers = calm(4);
  for (const int r : {2, 3}) peers[r].silent_s = peers[r].idle_s = 10.5;
  EXPECT_EQ(sentence(peers).find("ranks 2, 3 sent no heartbeat for 10.5 s, last at step 7"), 0u);
  EXPECT_TRUE(hung(peers));
  EXPECT_FALSE(find_stalled_ranks(peers, 1, {}));  // judges only rank 0
  peers[0].silent_s = peers[0].idle_s = 11;
  EXPECT_EQ(sentence(peers, 1).find("rank 0 sent no heartbeat"), 0u);
}

TEST(HangDetector, NamesMissingRanks) {
  std::vector<PeerState> peers = calm(3);
  peers[1].idle_s = 12;
  for (const int r : {0, 2}) {
    peers[r].idle_s = 12;
    enter(peers[r], 1, 6, 12000);
  }
  EXPECT_EQ(sentence(peers).find(
                "rank 1 has not reached collective 6 of 'bulk', in which other ranks have waited for 12.0 s"),
            0u);
  EXPECT_TRUE(hung(peers));
  EXPECT_FALSE(find_stalled_ranks(peers, 2, {}));
  enter(peers[1], 1, 6, 200);
  EXPECT_FALSE(find_stalled_ranks(peers, 0, {})) << "it has just arrived: the others waited for it";
  enter(peers[1], 1, 6, -1);
  EXPECT_FALSE(find_stalled_ranks(peers, 0, {})) << "it has already returned";
  enter(peers[1], 1, 6, 11000);
  EXPECT_NE(sentence(peers).find("has not ended for 11.0 s, although all ranks are in it"), std::string::npos);
  EXPECT_TRUE(hung(peers));
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
