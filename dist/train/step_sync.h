// step_sync: what the ranks tell each other between steps: somebody was asked to stop, a checkpoint is written or failed.
//
// One small all-reduce about every tenth of a second, not every step: all ranks count the same steps in between, from the
// longest step that any of them saw.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "core/comm/comm.h"
#include "dist/train/checkpointer.h"

namespace pal::dist {

class StepSync {
 public:
  // stop_asked: whether this rank was told to stop (a signal). comm must outlive this.
  StepSync(comm::Comm& comm, std::function<bool()> stop_asked);

  // Collective. After a step; settles a checkpoint that all ranks have written. Whether all ranks shall stop here.
  bool sync(Checkpointer& checkpoints);

 private:
  using Clock = std::chrono::steady_clock;
  comm::Comm& comm_;
  const std::function<bool()> stop_asked_;
  int64_t between_ = 1, left_ = 1;  // steps from one meeting to the next; still to go
  Clock::time_point last_ = Clock::now();
};

}  // namespace pal::dist
