// faults: injected failures, to test that a run survives them: PAL_FAULT=kind:rank:step[-last][:always],
// comma-separated.
//
// kill (as kill -9), stop (SIGSTOP), hang (sleeps forever), busy (computes for 12 seconds), nan (the loss's gradient),
// flip (a bit of the parameters), write-fail (a checkpoint); late-round (a query round) and late-write (a checkpoint)
// take 12 seconds longer. A fault occurs once, in the first start of a run; `always`: in every start, every time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/ops/named_tensors.h"

namespace pal::dist {

enum class FaultKind { kill, stop, hang, busy, nan, flip, write_fail, late_round, late_write };

struct Fault {
  FaultKind kind = FaultKind::kill;
  int rank = 0;
  int64_t first = 0, last = 0;  // steps
  bool always = false;
};
std::vector<Fault> parse_faults(const std::string& text);  // throws Error (usage)

class Faults {
 public:
  // restarts: starts of this run before this one.
  Faults(std::vector<Fault> faults, int rank, int restarts);

  bool strikes(FaultKind kind, int64_t step);
  // Before a step: kill, stop, hang, busy and flip.
  void before_step(int64_t step, const ops::NamedTensors& parameters);
  void poison(at::Tensor gradient, int64_t step);  // nan
  void before_write(int64_t step);                 // write-fail: throws Error; late-write: sleeps
  void before_round(int64_t step);                 // late-round: sleeps

 private:
  std::vector<Fault> faults_;
  std::mutex mutex_;  // guards struck_: the checkpointer's and the query round's threads use it too
  std::set<std::pair<size_t, int64_t>> struck_;
};

}  // namespace pal::dist
