#include "dist/health/hang_detector.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "dist/comm/mpi_check.h"
#include "dist/comm/rank_status.h"

namespace pal::dist {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCommNames[kComms] = {"now", "bulk", "control", "device", "node"};

const char* has_not(const std::vector<int>& ranks) { return ranks.size() == 1 ? "has not" : "have not"; }

bool exceeds(int64_t ms, double seconds) { return static_cast<double>(ms) >= 1000 * seconds; }

// The ranks that are silent for longer than their limit.
std::optional<std::string> find_silent(const std::vector<PeerState>& peers, int self, const HangLimits& limits) {
  std::vector<int> silent;
  for (int r = 0; r < static_cast<int>(peers.size()); ++r) {
    const double limit = peers[r].starved ? limits.starved_s : limits.silence_s;
    if (r != self && (self == 0 || r == 0) && peers[r].silent_s > limit) silent.push_back(r);
  }
  if (silent.empty()) return std::nullopt;
  const PeerState& first = peers[silent.front()];
  return fmt::format("{} sent no heartbeat for {:.1f} s, last at step {}; {}", ranks_text(silent), first.silent_s,
                     first.heartbeat.step,
                     first.starved ? "the process is runnable but has had no CPU: the host is oversubscribed"
                                   : "the process is stopped, or its host is unreachable");
}

// The ranks that communicator c waits for, by the collective with the highest number among those that wait too long.
std::optional<std::string> find_missing(const std::vector<PeerState>& peers, size_t c, const HangLimits& limits) {
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
    return fmt::format(
        "collective {} of '{}' has not ended for {:.1f} s, although all ranks are in it; check the network", furthest,
        kCommNames[c], static_cast<double>(waited) / 1000);
  }
  const bool starved = std::any_of(missing.begin(), missing.end(), [&](int r) { return peers[r].starved; });
  if (starved && !exceeds(waited, limits.starved_s)) return std::nullopt;
  return fmt::format(
      "{} {} reached collective {} of '{}', in which other ranks have waited for {:.1f} s, last at step {}",
      ranks_text(missing), has_not(missing), furthest, kCommNames[c], static_cast<double>(waited) / 1000,
      peers[missing.front()].heartbeat.step);
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

std::optional<std::string> find_stalled_ranks(const std::vector<PeerState>& peers, int self, const HangLimits& limits) {
  if (auto sentence = find_silent(peers, self, limits)) return sentence;
  if (self != 0) return std::nullopt;
  for (size_t c = 0; c + 1 < kComms; ++c) {  // without the last, node: its numbers differ from host to host
    if (auto sentence = find_missing(peers, c, limits)) return sentence;
  }
  return std::nullopt;
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

bool LocalRanks::is_runnable(int rank) const {
  const int64_t pid = pids_[static_cast<size_t>(rank)];
  return pid > 0 && pal::dist::is_runnable(pid);
}

bool is_runnable(int64_t pid) {
  std::error_code error;  // the process may end during the loop
  for (fs::directory_iterator thread("/proc/" + std::to_string(pid) + "/task", error), end; !error && thread != end;
       thread.increment(error)) {
    if (state_of(thread->path() / "stat") == 'R') return true;
  }
  return false;
}

}  // namespace pal::dist
