// watchdog: a thread of each rank that sends heartbeats, and ends the job when a rank is silent or does not come.
//
// A rank without a sign of life for 10 s (stopped, swapped out, unreachable) or one that keeps the others waiting in a
// collective for max(10 s, 10 × median step) is named by rank 0 (rank 0 itself by the next), each rank writes its last
// collectives to flight/rank-R.json in the run folder, and the job ends with Exit::lost, which a supervisor or a batch
// script answers with a new start. While ranks rightly wait long (start, questions, checkpoints) the limit for collectives is ten
// minutes. A job that was suspended as a whole is not taken for one that hangs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dist/comm/world.h"

namespace pal::dist {

enum class Pace { slow, steps };  // of what happens now: rare and long, or the training steps

class Watchdog {
 public:
  // Collective. A world of one rank has nobody to watch.
  Watchdog(World& world, std::string run_dir);
  ~Watchdog();  // Collective, unless an error is unwinding.

  void pace(Pace pace);
  void step_done(int64_t step, double seconds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pal::dist
