// step_metrics: a line of metrics.jsonl for each logged step, with what an evaluation while training found.
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
#include "dist/health/watchdog.h"
#include "dist/train/grad_sync.h"
#include "dist/train/query_round.h"
#include "dist/train/step_observer.h"

namespace pal::dist {

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
  std::function<void()> share_statistics;  // Collective. Before the encoder is evaluated.
  std::function<void(const std::string& sentence)> warn;
};

// Collective: after() of a step that is logged.
class StepMetrics final : public StepObserver {
 public:
  explicit StepMetrics(MetricsSources of) : of_(std::move(of)) {}
  void after(const FinishedStep& done) override;

 private:
  const MetricsSources of_;
  eval::CollapseWatch collapse_;  // rank 0
  bool failed_ = false;           // a line could not be written; said once
};

}  // namespace pal::dist
