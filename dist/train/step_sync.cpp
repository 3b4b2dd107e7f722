#include "dist/train/step_sync.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace pal::dist {
namespace {

constexpr int64_t kMicroseconds = 100'000, kMostSteps = 1000;

}  // namespace

StepSync::StepSync(comm::Comm& comm, std::function<bool()> stop_asked, std::function<bool()> save_due)
    : comm_(comm), stop_asked_(std::move(stop_asked)), save_due_(std::move(save_due)) {}

StepSync::Decision StepSync::sync(Checkpointer& checkpoints) {
  if (--left_ > 0) return {};
  const auto elapsed = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - last_).count();
  const CheckpointReport mine = checkpoints.report();
  at::Tensor words = at::empty({5}, at::kLong);
  int64_t* w = words.data_ptr<int64_t>();
  w[0] = stop_asked_ && stop_asked_() ? 1 : 0;
  w[1] = mine.unfinished;
  w[2] = mine.failed;
  w[3] = elapsed / between_;
  w[4] = save_due_ && save_due_() ? 1 : 0;
  comm_.all_reduce(words, comm::ReduceOp::max);
  checkpoints.settle({w[1], w[2]});
  left_ = between_ = std::clamp<int64_t>(kMicroseconds / std::max<int64_t>(w[3], 1), 1, kMostSteps);
  last_ = Clock::now();
  return {w[0] != 0, w[4] != 0};
}

}  // namespace pal::dist
