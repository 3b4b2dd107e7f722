// watchdog: a thread of each rank that sends heartbeats and ends the job when a rank is silent or stalled.
//
// Stalled is a rank that sends no heartbeat for train.heartbeat_seconds (stopped, swapped out, unreachable), or one
// that has not reached a collective in which other ranks have waited for train.stall_seconds and ten median steps. A
// rank that works has train.hang_seconds, with a warning: its threads run, wait for a core or for storage, or its
// training thread waits for the loader. So have all ranks during long operations (start, query rounds, checkpoints).
// Rank 0's watchdog names the stalled rank; the other ranks watch only rank 0. Each rank writes its last collectives to
// flight/rank-R.json in the run folder. The job then ends with Exit::lost, upon which a supervisor or a batch script
// starts it again. A job that was suspended as a whole is not reported as hung.
//
// Thread: the watchdog's thread sleeps until the next tick or stop(). It uses the heartbeats' own communicator and
//   waits for no other rank. Only stop() and the destructor wait for it. Any thread may call set_phase() and
//   step_done().
// Lifetime: stop() is the orderly end on all ranks. The destructor ends this rank's thread and does not communicate.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dist/comm/world.h"
#include "dist/health/hang_detector.h"

namespace pal::dist {

// What the training thread does now; it sets the limit for collectives.
enum class Phase { long_operation, steps, loading };

class Watchdog {
 public:
  // Collective. In a world of one rank there is no thread.
  Watchdog(World& world, std::string run_dir, const HangLimits& limits = {});
  ~Watchdog();

  void stop();  // Collective. Ends the thread and closes the heartbeats' communicator.

  void set_phase(Phase phase);
  void step_done(int64_t step, double seconds);

 private:
  struct State;
  void end_thread();
  std::unique_ptr<State> state_;  // null: one rank, or stopped
};

}  // namespace pal::dist
