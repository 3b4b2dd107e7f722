#include "dist/health/hang_detector.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string_view>

#include "dist/comm/mpi_check.h"
#include "dist/comm/rank_status.h"

namespace pal::dist {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCommNames[kComms] = {"now", "bulk", "control", "device", "node"};

const char* has_not(const std::vector<int>& ranks) { return ranks.size() == 1 ? "has not" : "have not"; }

bool exceeds(int64_t ms, double seconds) { return static_cast<double>(ms) >= 1000 * seconds; }

// The ranks that are silent and do not work; when there is none, those that are silent.
std::optional<Stall> find_silent(const std::vector<PeerState>& peers, int self, const HangLimits& limits) {
  std::vector<int> lost, starved;
  for (int r = 0; r < static_cast<int>(peers.size()); ++r) {
    if (r == self || (self != 0 && r != 0) || peers[r].silent_s <= limits.silence_s) continue;
    (peers[r].idle_s > limits.silence_s ? lost : starved).push_back(r);
  }
  const std::vector<int>& silent = lost.empty() ? starved : lost;
  if (silent.empty()) return std::nullopt;
  const PeerState& first = peers[silent.front()];
  return Stall{fmt::format("{} sent no heartbeat for {:.1f} s, last at step {}; {}", ranks_text(silent), first.silent_s,
                           first.heartbeat.step,
                           lost.empty() ? "the process is runnable but has had no CPU: the host is oversubscribed"
                                        : "the process is stopped, or its host is unreachable"),
               !lost.empty() || first.silent_s > limits.hang_s};
}

// Whether the training thread of the rank waits for another rank, which has not reached the collective that it is in.
// The gradient thread ('bulk') waits beside the training, and numbers of 'node' differ between hosts.
bool waits(const PeerState& peer, const std::vector<PeerState>& peers) {
  for (size_t c = 0; c + 1 < kComms; ++c) {
    if (std::string_view(kCommNames[c]) == "bulk" || peer.heartbeat.waiting_ms[c] < 0) continue;
    for (const PeerState& p : peers) {
      if (p.heartbeat.number[c] < peer.heartbeat.number[c]) return true;
    }
  }
  return false;
}

// A chain of ranks that wait for each other ends at a rank that works, unless ranks are deadlocked or hung.
bool one_works(const std::vector<PeerState>& peers, const HangLimits& limits) {
  return std::any_of(peers.begin(), peers.end(),
                     [&](const PeerState& p) { return p.idle_s <= limits.silence_s && !waits(p, peers); });
}

// The ranks that communicator c waits for, by the collective with the highest number among those that wait too long.
std::optional<Stall> find_missing(const std::vector<PeerState>& peers, size_t c, const HangLimits& limits) {
  int64_t furthest = 0, waited = -1;
  for (const PeerState& p : peers) {
    if (!exceeds(p.heartbeat.waiting_ms[c], limits.waiting_s) || p.heartbeat.number[c] < furthest) continue;
    furthest = p.heartbeat.number[c];
    waited = std::max(waited, p.heartbeat.waiting_ms[c]);
  }
  if (waited < 0) return std::nullopt;
  std::vector<int> missing;
  for (int r = 0; r < static_cast<int>(peers.size()); ++r) {
    if (peers[r].heartbeat.number[c] < furthest) missing.push_back(r);
  }
  if (missing.empty()) {
    // All ranks are in it since the last one arrived: the shortest wait counts. A rank that has returned from it, or is
    // in a later one, shows that it ends.
    for (const PeerState& p : peers)
      waited = std::min(waited, p.heartbeat.number[c] == furthest ? p.heartbeat.waiting_ms[c] : -1);
    if (!exceeds(waited, limits.waiting_s)) return std::nullopt;
    return Stall{
        fmt::format("collective {} of '{}' has not ended for {:.1f} s, although all ranks are in it; check the network",
                    furthest, kCommNames[c], static_cast<double>(waited) / 1000),
        true};
  }
  return Stall{
      fmt::format("{} {} reached collective {} of '{}', in which other ranks have waited for {:.1f} s, last at step {}",
                  ranks_text(missing), has_not(missing), furthest, kCommNames[c], static_cast<double>(waited) / 1000,
                  peers[missing.front()].heartbeat.step),
      !one_works(peers, limits) || exceeds(waited, limits.hang_s)};
}

// The same number on ranks of one boot of one kernel that share PID and network namespace; 0 when unknown. Two network
// namespaces count as two hosts, because the link between them may be cut.
uint64_t host_identity() {
  std::string text;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), text);
  if (text.empty()) return 0;
  for (const char* space : {"/proc/self/ns/pid", "/proc/self/ns/net"}) {
    std::error_code error;
    text += fs::read_symlink(space, error).string();
    if (error) return 0;
  }
  return std::hash<std::string>()(text);
}

// The state letter of "1234 (a name) R 1 ..."; a name may contain brackets.
char state_of(const fs::path& stat) {
  std::string line;
  std::getline(std::ifstream(stat), line);
  const size_t name_end = line.rfind(") ");
  return name_end == std::string::npos || name_end + 2 >= line.size() ? ' ' : line[name_end + 2];
}

}  // namespace

std::optional<Stall> find_stalled_ranks(const std::vector<PeerState>& peers, int self, const HangLimits& limits) {
  std::optional<Stall> stall = find_silent(peers, self, limits);
  for (size_t c = 0; self == 0 && c + 1 < kComms; ++c) {  // without the last, node: its numbers differ between hosts
    if (stall && stall->hung) return stall;
    if (auto missing = find_missing(peers, c, limits); missing && (missing->hung || !stall)) stall = missing;
  }
  return stall;
}

LocalRanks::LocalRanks(MPI_Comm comm) {
  struct Process {
    uint64_t host = 0;
    int64_t pid = 0;
  };
  const Process mine{host_identity(), getpid()};
  int size = 1;
  PAL_MPI_CHECK(MPI_Comm_size(comm, &size));
  std::vector<Process> all(static_cast<size_t>(size));
  PAL_MPI_CHECK(MPI_Allgather(&mine, sizeof(Process), MPI_BYTE, all.data(), sizeof(Process), MPI_BYTE, comm));
  for (const Process& p : all) pids_.push_back(mine.host != 0 && p.host == mine.host ? p.pid : 0);
}

bool LocalRanks::works(int rank) const {
  const int64_t pid = pids_[static_cast<size_t>(rank)];
  return pid > 0 && is_working(pid);
}

bool is_working(int64_t pid, int64_t except) {
  std::error_code error;  // the process may end during the loop
  for (fs::directory_iterator thread("/proc/" + std::to_string(pid) + "/task", error), end; !error && thread != end;
       thread.increment(error)) {
    if (thread->path().filename() == std::to_string(except)) continue;
    const char state = state_of(thread->path() / "stat");
    if (state == 'R' || state == 'D') return true;
  }
  return false;
}

}  // namespace pal::dist
