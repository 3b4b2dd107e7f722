// run_observers: the observers of a step: injected faults, comparison of parameters, checkpoints, stop, watchdog,
// metrics.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/data/loader/loader.h"
#include "core/eval/diagnostics.h"
#include "core/graph/store.h"
#include "core/record/metrics.h"
#include "core/setup/online_eval.h"
#include "core/setup/run_spec.h"
#include "dist/comm/world.h"
#include "dist/health/faults.h"
#include "dist/health/watchdog.h"
#include "dist/train/grad_sync.h"
#include "dist/train/query_round.h"
#include "dist/train/step_observer.h"
#include "kernels/base/clock.h"

namespace pal::dist {

// Failures that PAL_FAULT asks for.
class FaultObserver final : public StepObserver {
 public:
  FaultObserver(Faults& faults, const model::Encoder& encoder) : faults_(faults), encoder_(encoder) {}
  void before(int64_t step) override;
  void on_gradient(int64_t step, const at::Tensor& dz) override;

 private:
  Faults& faults_;
  const model::Encoder& encoder_;
};

// Collective, every so many steps. The parameters have the same bits on all ranks, or the run ends.
class ParameterObserver final : public StepObserver {
 public:
  ParameterObserver(const model::Encoder& encoder, comm::Comm& comm, int64_t every)
      : encoder_(encoder), comm_(comm), every_(every) {}
  void after(const FinishedStep& done) override;

 private:
  const model::Encoder& encoder_;
  comm::Comm& comm_;
  const int64_t every_;
};

// Collective, every so many steps. A step at which the run gives up is not saved.
class CheckpointObserver final : public StepObserver {
 public:
  CheckpointObserver(int64_t every, std::function<void()> save) : every_(every), save_(std::move(save)) {}
  void after(const FinishedStep& done) override;

 private:
  const int64_t every_;
  const std::function<void()> save_;
};

// Collective. Decides whether all ranks stop after this step, or save a checkpoint that is due by the clock.
class SyncObserver final : public StepObserver {
 public:
  explicit SyncObserver(std::function<void(const FinishedStep&)> sync) : sync_(std::move(sync)) {}
  void after(const FinishedStep& done) override { sync_(done); }

 private:
  const std::function<void(const FinishedStep&)> sync_;
};

// How long steps take, for the watchdog's time limit.
class WatchdogObserver final : public StepObserver {
 public:
  explicit WatchdogObserver(Watchdog& watchdog) : watchdog_(watchdog) {}
  void after(const FinishedStep& done) override { watchdog_.step_done(done.steps_done, done.report.seconds); }

 private:
  Watchdog& watchdog_;
};

// What a line is made of. All of it outlives the observer.
struct MetricsSources {
  const setup::RunSpec& spec;
  World& world;
  model::Encoder& encoder;
  const graph::GraphStore& store;
  const GradSync& grads;
  const data::Loader& loader;
  QueryRounds* rounds = nullptr;              // null without an oracle
  const setup::OnlineEval* online = nullptr;  // null with eval.every=0
  record::MetricsWriter* writer = nullptr;    // rank 0 alone
  Watchdog* watchdog = nullptr;
  int64_t steps_per_epoch = 1, last_step = 0;
  Clock::time_point start;                 // of the run in this process
  std::function<void()> share_statistics;  // Collective. Before the encoder is evaluated.
  std::function<void(const std::string& sentence)> warn;
};

// Collective: after() of a step that is logged. A line of metrics.jsonl, with what an evaluation while training found.
class StepMetrics final : public StepObserver {
 public:
  explicit StepMetrics(MetricsSources of) : of_(std::move(of)) {}
  void after(const FinishedStep& done) override;

 private:
  const MetricsSources of_;
  eval::CollapseWatch collapse_;  // rank 0
  bool failed_ = false;           // a line could not be written; reported once
};

}  // namespace pal::dist
