// supervise: restarts a job from its last checkpoint after a rank died or hung.
//
// It restarts after a rank was killed by a signal, and after ranks were lost or differ. It does not restart after
// errors that a restart cannot fix (usage, data, numerics, a bug), after an orderly end, or after a user stopped the
// job.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pal::launch {

struct RestartLimits {
  int max_restarts = 3;
  int min_ranks = 0;         // 0: always the requested number of ranks
  int without_progress = 3;  // restarts in a row without a newer checkpoint
};

// Restarts: makes the decisions; it starts no processes.
class Restarts {
 public:
  Restarts(RestartLimits limits, int ranks, int64_t newest_step)
      : limits_(limits), ranks_(ranks), newest_(newest_step) {}

  struct Decision {
    int ranks = 0;       // of the next start; 0: stop
    int code = 0;        // to stop with
    std::string reason;  // a sentence for the user
  };
  // After a start ended with `code`, when the newest checkpoint is of this step (-1: there is none).
  Decision after(int code, int64_t newest_step);
  int count() const { return restarts_; }

 private:
  const RestartLimits limits_;
  int ranks_, restarts_ = 0, idle_ = 0;  // idle_: restarts in a row without progress
  int64_t newest_;
};

struct SupervisedJob {
  std::string program;
  std::vector<std::string> args;
  int ranks = 1;
  std::function<int(int ranks)> threads;  // of each rank
  std::function<int64_t()> newest_step;   // of the checkpoints, -1: none
};
// Returns the job's exit code. PAL_RESTARTS holds the number of earlier starts. TERM and INT become USR2: the
// ranks write a checkpoint and end with 75; a second one ends them at once.
int supervise(const SupervisedJob& job, const RestartLimits& limits);

}  // namespace pal::launch
