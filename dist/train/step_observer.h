// step_observer: what every rank does around a training step beside the training itself.
//
// Order: the trainer calls its observers one after another, in the order in which it made them. That order is the same
//   on every rank, because some observers are collective.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pal::loss {
struct Batch;
}

namespace pal::dist {

struct StepReport {
  int64_t step = 0;  // of this step, from 0
  double loss = 0;
  std::vector<std::pair<std::string, double>> terms;
  double lr = 0;
  bool skipped = false;     // a gradient was not finite: nothing was changed
  bool give_up = false;     // train.max_skips of them in a row: go back to the last checkpoint, or stop
  double seconds = 0;       // of the training itself, without its observers
  double images_per_s = 0;  // of this step, over all ranks
  int64_t loss_bytes = 0;   // received by this rank in the collectives of the loss
  std::string warning;      // for the terminal, printed once; usually ""
};

// A step that is done.
struct FinishedStep {
  StepReport& report;   // an observer may add a warning
  const at::Tensor& z;  // (local rows, D) the embeddings
  const loss::Batch& batch;
  int64_t steps_done = 0;  // with this one
};

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void before(int64_t /*step*/) {}                                 // before anything of the step
  virtual void on_gradient(int64_t /*step*/, const at::Tensor& /*dz*/) {}  // of the loss, before backward
  virtual void after(const FinishedStep& /*done*/) {}                      // after the optimizer
};

}  // namespace pal::dist
