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
  double silent_s = 0;   // since its last heartbeat
  bool starved = false;  // silent, but its process is runnable: it gets no CPU
  Heartbeat heartbeat;   // the last one
};

struct HangLimits {
  double silence_s = 10;  // without a heartbeat
  double starved_s = 60;  // the same for a rank that is starved
  double waiting_s = 10;  // inside one collective
};

// A sentence about the ranks that are silent or missing, or nothing. `peers` is by rank and includes this rank. Rank 0
// judges every rank; another rank receives heartbeats from rank 0 only and judges only rank 0.
std::optional<std::string> find_stalled_ranks(const std::vector<PeerState>& peers, int self, const HangLimits& limits);

// The processes of the ranks on this host. A silent rank whose process is runnable is starved of CPU, not hung; one
// that is stopped is not runnable.
class LocalRanks {
 public:
  explicit LocalRanks(MPI_Comm comm);  // Collective.
  // False for a rank on another host, and where /proc does not show it.
  bool is_runnable(int rank) const;

 private:
  std::vector<int64_t> pids_;  // by rank; 0: on another host, or in another PID namespace
};

// Whether a thread of the process runs or waits for a core (state R in /proc).
bool is_runnable(int64_t pid);

}  // namespace pal::dist
