// label_run: the run behind the labeling page: its folder, its graph, its figures, the next round and the exports.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/label/answer_service.h"
#include "core/label/label_spec.h"
#include "core/label/label_stats.h"
#include "core/label/users.h"
#include "core/oracle/ledger/ledger.h"
#include "core/oracle/oracle.h"
#include "launch/label/background.h"
#include "launch/label/page.h"
#include "launch/label/pictures.h"
#include "launch/run/run_graph.h"

namespace pal::launch {

inline constexpr int64_t kGridMembers = 15;  // of a grid on the page: 3 rows of 5

// What `pal label` was given: a run folder, or a config and where its run folder is.
struct LabelTarget {
  std::string target, run_dir;  // run_dir: "" with a run folder, or runs/<config stem>
  std::vector<std::string> overrides;
};
// The run folder of the target; that of a config is created when it does not exist.
std::string label_run_folder(const LabelTarget& target);
// The run's graph with the overrides of the section oracle. oracle.members is kGridMembers unless it was set; where no
// label is known, oracle.templates is `discover` unless it was set.
RunGraph open_label_graph(const LabelTarget& target, const std::string& run);

// The user's words: of the config, which may be newer than its run folder, or of the run.
label::LabelSpec label_words(const LabelTarget& target, const RunGraph& graph);

class LabelRun final : public PageRun {
 public:
  // Starts the background worker. `device` embeds the pool of a round. All other arguments must outlive this. Throws
  // Error (usage) when the run has neither a sampler nor an open question.
  LabelRun(const std::string& run, const RunGraph& graph, oracle::Ledger& ledger, label::AnswerService& service,
           const label::Users& people, const Pictures& pictures, label::LabelSpec words, at::Device device);

  std::optional<PageImage> image(int64_t sample, ImageSize size) const override { return pictures_.of(sample, size); }
  std::shared_ptr<const label::LabelStats> stats() const override { return background_->stats(); }
  RunFacts facts() const override { return background_->facts(); }
  std::string node_name(int64_t node) const override;
  std::string class_name(int64_t sample) const override;
  std::string exported(const std::string& name) const override;
  void log(const std::string& line) const override;
  double now() const override;

 private:
  RunFacts read_facts() const;
  AskResult ask() const;

  const std::string run_;
  const RunGraph& graph_;
  const label::LabelSpec words_;
  const at::Device device_;
  oracle::Ledger& ledger_;
  const Pictures& pictures_;
  const std::vector<int64_t> labels_;
  const oracle::ConsensusKind consensus_;
  const int64_t questions_, budget_;
  const std::unique_ptr<oracle::QuerySampler> sampler_;
  std::unique_ptr<BackgroundWorker> background_;  // the last member: its threads use the others
};

}  // namespace pal::launch
