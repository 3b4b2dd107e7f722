// step_sync: what the ranks exchange between steps: whether one was asked to stop, whether a checkpoint is due by the
// clock, and whether one is written.
//
// Collective: one small all-reduce about every tenth of a second, not every step. The number of steps between two of
//   them comes from the longest step time of any rank, so it is the same on every rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "core/comm/comm.h"
#include "dist/train/checkpointer.h"

namespace pal::dist {

class StepSync {
 public:
  // stop_asked: whether this rank was asked to stop (a signal). save_due: whether a checkpoint is due by this rank's
  // clock. Each may be empty. comm must outlive this.
  StepSync(comm::Comm& comm, std::function<bool()> stop_asked, std::function<bool()> save_due);

  struct Decision {
    bool stop = false, save = false;
  };
  // Collective. After a step; settles a checkpoint that all ranks have written. Returns what all ranks do here: what
  // one of them asks for.
  Decision sync(Checkpointer& checkpoints);

 private:
  using Clock = std::chrono::steady_clock;
  comm::Comm& comm_;
  const std::function<bool()> stop_asked_, save_due_;
  int64_t between_ = 1, left_ = 1;  // steps from one all-reduce to the next; steps left
  Clock::time_point last_ = Clock::now();
};

}  // namespace pal::dist
