// trainer: one run on all ranks. Trainer::step reads as the list of the design, top to bottom.
//
// Collective: the constructor, step() and finish() are called by all ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "core/data/dataset.h"
#include "core/data/loader.h"
#include "core/graph/store.h"
#include "core/io/metrics.h"
#include "core/loss/criterion.h"
#include "core/model/encoder.h"
#include "core/optim/optimizer.h"
#include "dist/grad_sync.h"
#include "dist/query_round.h"
#include "dist/run_folder.h"
#include "dist/world.h"

namespace pal {

struct StepReport {
  int64_t step = 0;            // of this step, from 0
  double loss = 0;
  std::vector<std::pair<std::string, double>> terms;
  double lr = 0;
  bool skipped = false;        // a gradient was not finite: nothing was changed
  double images_per_s = 0;     // of this step, over all ranks
};

class Trainer {
 public:
  Trainer(const Config& config, World& world, const std::string& run_dir, Resume resume);
  ~Trainer();

  int64_t next_step() const { return step_; }
  int64_t last_step() const { return schedule_.total_steps; }
  bool done() const { return step_ >= schedule_.total_steps; }
  // A table of what will be trained, for people.
  std::vector<std::pair<std::string, std::string>> summary() const;

  StepReport step();
  // Writes the last checkpoint and the closing line of metrics.jsonl.
  void finish();

  Encoder& encoder() { return *encoder_; }
  std::string weights_sha256() const;
  std::vector<std::string> warnings;    // of the start, for the terminal (rank 0)

 private:
  void resume_from_checkpoint();
  void save_checkpoint();
  void plan_ahead();
  Batch plan(const LoadedStep& loaded) const;
  at::Tensor encode(const LoadedStep& loaded) const;
  void guard(const StepReport& report);
  void log(const StepReport& report, const at::Tensor& z);
  std::string fingerprint() const;
  std::string run_id() const;
  void compare_ranks() const;
  QueryRounds::EmbedPool embed_pool();

  const Config config_;
  World& world_;
  const int threads_;
  std::unique_ptr<RunFolder> folder_;   // rank 0
  const std::string run_dir_;
  std::shared_ptr<Dataset> data_;
  std::vector<int64_t> subset_;
  kernels::AugmentOptions augment_;
  int64_t labelled_ = 0;
  int64_t edge_samples_ = 0;              // of a batch, drawn from what is known
  int64_t planned_until_ = 0;             // the loader prepares the steps below
  EpochPlan epoch_plan_;
  Schedule schedule_;
  GraphStore store_;
  std::shared_ptr<Encoder> encoder_;
  Criterion criterion_;
  std::unique_ptr<GradSync> grads_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<QueryRounds> rounds_;   // null without an oracle
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<MetricsWriter> metrics_;  // rank 0
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int64_t step_ = 0;
  int64_t skips_ = 0;                     // in a row
  int64_t saved_step_ = -1;
};

}  // namespace pal
