// step_sync: what the ranks exchange between steps: whether one was asked to stop, and whether a checkpoint is written.
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
  // stop_asked: whether this rank was asked to stop (a signal). comm must outlive this.
  StepSync(comm::Comm& comm, std::function<bool()> stop_asked);

  // Collective. After a step; settles a checkpoint that all ranks have written. Returns whether all ranks stop here.
  bool sync(Checkpointer& checkpoints);

 private:
  using Clock = std::chrono::steady_clock;
  comm::Comm& comm_;
  const std::function<bool()> stop_asked_;
  int64_t between_ = 1, left_ = 1;  // steps from one all-reduce to the next; steps left
  Clock::time_point last_ = Clock::now();
};

}  // namespace pal::dist
