#include "launch/process/supervise.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/process/mpirun.h"

namespace pal::launch {
namespace {

bool worth_a_restart(int code) { return code > 128 || code == static_cast<int>(Exit::lost); }

std::string what_happened(int code) {
  if (code > 128 && code < 128 + NSIG)
    return "a rank was killed by signal " + std::to_string(code - 128) + " (" + strsignal(code - 128) + ")";
  return "the ranks ended with exit code " + std::to_string(code);
}

}  // namespace

Restarts::Decision Restarts::after(int code, int64_t newest_step) {
  if (!worth_a_restart(code)) return {0, code, ""};
  const bool progress = newest_step > newest_;
  newest_ = std::max(newest_, newest_step);
  idle_ = progress ? 0 : idle_ + (restarts_ > 0 ? 1 : 0);
  const std::string happened = what_happened(code);
  if (idle_ >= limits_.without_progress) {
    return {0, static_cast<int>(Exit::no_progress),
            happened + "; " + std::to_string(idle_) + " restarts in a row wrote no checkpoint newer than " +
                (newest_ < 0 ? "none" : "step-" + std::to_string(newest_)) +
                "; the run stops, because another start would not help"};
  }
  if (restarts_ >= limits_.max_restarts) {
    return {0, code,
            happened + "; " + std::to_string(restarts_) +
                " restarts are used up (--max-restarts); give the same command to resume"};
  }
  // A start that made no progress and died: one rank fewer, if --min-np allows it.
  if (!progress && restarts_ > 0 && limits_.min_ranks > 0 && ranks_ > limits_.min_ranks) --ranks_;
  ++restarts_;
  return {ranks_, 0,
          happened + "; restart " + std::to_string(restarts_) + " of " + std::to_string(limits_.max_restarts) +
              " with " + std::to_string(ranks_) + (ranks_ == 1 ? " rank" : " ranks") +
              (newest_ < 0 ? ", from the start" : ", from the checkpoint of step " + std::to_string(newest_))};
}

int supervise(const SupervisedJob& job, const RestartLimits& limits) {
  Restarts restarts(limits, job.ranks, job.newest_step());
  for (int ranks = job.ranks;;) {
    setenv("PAL_RESTARTS", std::to_string(restarts.count()).c_str(), 1);
    const CommandEnd end = run_job(job.program, job.args, ranks, job.threads(ranks), OnStop::checkpoint);
    if (end.stopped_by != 0 && worth_a_restart(end.code)) return 128 + end.stopped_by;
    const Restarts::Decision next = restarts.after(end.code, job.newest_step());
    if (!next.reason.empty())
      std::fprintf(stderr, "%s: %s\n", next.ranks > 0 ? "warning" : "error", printable(next.reason).c_str());
    if (next.ranks == 0) return next.code;
    ranks = next.ranks;
  }
}

}  // namespace pal::launch
