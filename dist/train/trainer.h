// trainer: one run on all ranks. Trainer::step reads top to bottom as the list of what a step does.
//
// Collective: the constructor, step() and finish() are called by all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/loader/loader.h"
#include "core/graph/build.h"
#include "core/loss/objective.h"
#include "core/model/micro_batches.h"
#include "core/optim/optimizer.h"
#include "core/optim/schedule.h"
#include "core/record/metrics.h"
#include "core/setup/online_eval.h"
#include "core/setup/run_spec.h"
#include "dist/comm/world.h"
#include "dist/health/faults.h"
#include "dist/health/watchdog.h"
#include "dist/train/checkpointer.h"
#include "dist/train/grad_sync.h"
#include "dist/train/query_round.h"
#include "dist/train/resume.h"
#include "dist/train/step_observer.h"
#include "dist/train/step_sync.h"
#include "kernels/base/clock.h"

namespace pal::model {
class Encoder;
}

namespace pal::dist {

// What else controls a run; each may be left out.
struct RunControl {
  std::function<bool()> stop_asked;  // this rank got a signal to stop
  Faults* faults = nullptr;          // injected ones
  Watchdog* watchdog = nullptr;
  at::Device device = at::kCPU;  // to compute on; World::use_device has chosen it
};

// How a run begins: at its newest checkpoint; without one at step 0, or where another run stood.
struct Beginning {
  Beginning(Resume resume, std::optional<Origin> origin = std::nullopt) : resume(resume), origin(std::move(origin)) {}
  Resume resume;
  std::optional<Origin> origin;
};

class Trainer {
 public:
  Trainer(const setup::RunSpec& spec, World& world, const std::string& run_dir, const Beginning& beginning,
          RunControl control = {});
  ~Trainer();

  int64_t next_step() const { return step_; }
  int64_t last_step() const { return schedule_.total_steps; }
  bool done() const { return step_ >= schedule_.total_steps; }
  // A table of what will be trained, for people.
  std::vector<std::pair<std::string, std::string>> summary() const;

  StepReport step();
  bool stopping() const {
    return stopping_;
  }  // a rank got a signal to stop, or questions wait for answers; the same on every rank after a step
  int64_t questions_out() const {
    return rounds_ && rounds_->leaves() ? rounds_->open_questions() : 0;
  }  // that the run ends for
  // Answers that take effect after the steps done.
  int64_t answers_waiting() const { return rounds_ ? rounds_->waiting() : 0; }
  // Writes the last checkpoint and the closing line of metrics.jsonl.
  void finish();
  // Writes a checkpoint of the steps done, to resume from later.
  void pause();

  std::vector<std::string> warnings;  // of the start, for the terminal (rank 0)

 private:
  void open_model();
  void begin(const std::optional<Origin>& origin);
  void open_rounds();
  void count_partners();
  void open_loader();
  void open_checkpoints();
  void open_metrics();
  void add_observers();
  void save_checkpoint();
  void save_last();
  void sync_ranks(const FinishedStep& done);
  void share_statistics() const;
  Checkpointer::Groups checkpointed() const;
  void warn(const std::string& sentence) const;
  void set_phase(Phase phase) const;
  std::string exchange_answers();
  void plan_ahead();
  data::LoadedStep load();
  loss::Batch plan(const data::LoadedStep& loaded) const;
  // The encoder's outputs of a step; with pieces each is encoded once more in backward.
  struct Encoded {
    at::Tensor outputs;
    std::optional<model::MicroBatches> pieces;
  };
  Encoded encode(const data::LoadedStep& loaded, const loss::Batch& batch) const;
  at::Tensor encode_views(const at::Tensor& images, int64_t views) const;
  loss::LossResult compute_loss(const at::Tensor& outputs, const loss::Batch& batch, StepReport& report) const;
  void backward(const Encoded& encoded, const data::LoadedStep& loaded, const at::Tensor& dz);
  void guard(StepReport& report);
  void update(double lr);
  std::string fingerprint() const;
  std::string weights_sha256() const;
  std::string loader_text() const;
  double measure_partners() const;
  QueryRounds::EmbedPool embed_pool();

  const setup::RunSpec run_;
  World& world_;
  const RunControl control_;
  const int threads_;
  const at::Device device_;
  std::unique_ptr<RunFolder> folder_;  // rank 0
  const std::string run_dir_;
  std::shared_ptr<data::Dataset> data_;
  std::vector<int64_t> subset_;
  kernels::AugmentOptions augment_;
  int64_t labeled_ = 0;
  int64_t edge_samples_ = 0;   // of a batch, drawn from what is known
  double partners_ = -1;       // rank 0: share of rows with a partner in the first batches; −1 where none is expected
  int64_t planned_until_ = 0;  // the loader prepares the steps below
  data::EpochSpec epoch_;
  optim::Schedule schedule_;
  oracle::OracleSpec oracle_;  // run_'s, with oracle.templates decided
  graph::GraphSpec graph_spec_;
  graph::GraphStore store_;
  std::shared_ptr<model::Encoder> encoder_;
  std::unique_ptr<loss::Objective> objective_;
  std::unique_ptr<GradSync> grads_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<QueryRounds> rounds_;  // null without an oracle
  std::unique_ptr<data::Loader> loader_;
  std::unique_ptr<record::MetricsWriter> metrics_;  // rank 0
  std::unique_ptr<setup::OnlineEval> online_;       // null with eval.every=0
  std::unique_ptr<Checkpointer> checkpoints_;
  std::unique_ptr<StepSync> step_sync_;
  bool stopping_ = false;
  const Clock::time_point start_ = Clock::now();
  int64_t step_ = 0;
  std::string begins_with_;  // what model.init gave, in words
  int64_t skips_ = 0;        // in a row
  int64_t trained_ = 0;      // steps that changed the weights; those before a checkpoint count as such
  int64_t saved_step_ = -1;
  Clock::time_point saved_at_ = Clock::now();
  std::vector<std::unique_ptr<StepObserver>> observers_;  // in the order in which they are called
};

}  // namespace pal::dist
