// hang_detector: finds the ranks that are stalled. find_stalled_ranks() decides from the heartbeats alone, without MPI
// and without a clock; LocalRanks asks the kernel about the processes on this host. The watchdog's thread calls both.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dist/health/heartbeat.h"

namespace pal::dist {

struct PeerState {
  double silent_s = 0;  // since its last heartbeat
  double idle_s = 0;    // since it last worked: by its heartbeat, or by what the kernel shows of its process
  Heartbeat heartbeat;  // the last one
};

// The settings train.heartbeat_seconds, train.stall_seconds and train.hang_seconds.
struct HangLimits {
  double silence_s = 10;  // without a heartbeat, of a rank that does not work
  double waiting_s = 10;  // inside one collective, when no rank works
  double hang_s = 600;    // of both, when a rank works
};

struct Stall {
  std::string sentence;  // which ranks are silent or missing
  bool hung = false;     // false: a rank still works, and hang_s has not passed
};

// The ranks that are silent or that keep others waiting in a collective, or nothing. `peers` is by rank and includes
// this rank. Rank 0 checks every rank; another rank receives heartbeats from rank 0 only and checks only rank 0.
std::optional<Stall> find_stalled_ranks(const std::vector<PeerState>& peers, int self, const HangLimits& limits);

// The processes of the ranks on this host. A silent rank whose process is runnable gets no CPU, and one that waits for
// storage makes progress: neither is hung. One that is stopped does not work.
class LocalRanks {
 public:
  explicit LocalRanks(MPI_Comm comm);  // Collective.
  // False for a rank on another host, and where /proc does not show it.
  bool works(int rank) const;

 private:
  std::vector<int64_t> pids_;  // by rank; 0: on another host, or in another PID namespace
};

// Whether a thread of the process, other than `except`, runs or waits for a core (state R in /proc) or for storage (D).
bool is_working(int64_t pid, int64_t except = 0);

}  // namespace pal::dist
