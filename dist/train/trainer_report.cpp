// trainer_report: what a run prints: its warnings, and the table it begins with.
#include <fmt/format.h>

#include "core/data/image/nvjpeg_decoder.h"
#include "core/graph/settings.h"
#include "core/model/encoder.h"
#include "dist/train/trainer.h"
#include "kernels/base/error.h"
#include "kernels/base/isa.h"
#include "kernels/base/printable.h"

namespace pal::dist {

void Trainer::warn(const std::string& sentence) const {
  fmt::print(stderr, "{}warning: {}\n", world_.size() > 1 ? world_.prefix() + " " : "", printable(sentence));
}

std::string Trainer::loader_text() const {
  const data::LoaderReport report = loader_->report();
  const int threads = run_.data.threads;
  return fmt::format("{} thread{} per rank, {} step{} ahead, at most {:.0f} MB", threads, threads == 1 ? "" : "s",
                     report.depth, report.depth == 1 ? "" : "s", report.bound_mb) +
         (run_.data.decoder == data::Decoder::nvjpeg ? ", JPEG files by nvJPEG " + data::nvjpeg_state().version : "");
}

std::vector<std::pair<std::string, std::string>> Trainer::summary() const {
  int64_t parameters = 0;
  for (const auto& p : encoder_->parameters()) parameters += p.numel();
  std::vector<std::pair<std::string, std::string>> lines = {
      {"data", fmt::format("{}, {} of {} samples", run_.data.train, subset_.size(), data_->size())},
      {"model",
       fmt::format("{} + projector, {:.2f} M parameters", config::choice_name(model::kBackbones, run_.model.backbone),
                   static_cast<double>(parameters) / 1e6)},
      {"graph", fmt::format("{}, {} {}", config::choice_name(graph::kGraphKinds, run_.graph.kind), labeled_,
                            run_.graph.groups.empty() ? "labels known" : "samples in groups of " + run_.graph.groups) +
                    (labeled_ > 0 && run_.graph.groups.empty() && run_.graph.labeled_fraction == 0
                         ? " (oracle.templates=given takes one label of each class)"
                         : "") +
                    (store_.edges().empty() ? "" : fmt::format(", {} weighted pairs", store_.edges().pairs()))},
      {"loss", config::choice_name(loss::kLosses, run_.loss.kind)},
      {"steps",
       fmt::format("{} of {} samples, {} per epoch", schedule_.total_steps, epoch_.global_batch,
                   epoch_.steps_per_epoch()) +
           (edge_samples_ > 0 ? fmt::format(", and up to {} of which relations are known", edge_samples_) : "")},
      {"learning rate", fmt::format("{:g} peak, {}, {} warm-up steps", schedule_.peak,
                                    config::choice_name(optim::kOptimizers, run_.optim.kind), schedule_.warmup_steps)},
      {"ranks", fmt::format("{} × {} thread{} on {}, {}", world_.size(), threads_, threads_ == 1 ? "" : "s",
                            device_.is_cpu() ? "the CPU" : "a GPU each", kernels::isa_name(kernels::best_isa()))},
      {"loader", loader_text()},
      {"run folder", run_dir_},
  };
  if (partners_ >= 0)
    lines.insert(
        lines.begin() + 3,
        {"partners", fmt::format("{:.0f} % of a batch's rows have a related sample in the batch", 100 * partners_)});
  if (const std::string unused = graph::answers_without_weight(run_.graph.kind);
      run_.oracle.sampler != "none" && !unused.empty())
    lines.insert(lines.begin() + 3, {"answers", unused});
  if (folder_ && !folder_->other_length().empty())
    lines.emplace_back("length", fmt::format("was {}; the learning rate follows the new length from step {} on",
                                             folder_->other_length(), step_));
  if (!begins_with_.empty()) lines.insert(lines.begin() + 2, {"begins with", begins_with_});
  if (run_.model.batch_norm != model::BatchNormScope::global) {
    lines.emplace_back("batch norm", fmt::format("model.batch_norm={}: results depend on the number of ranks",
                                                 config::choice_name(model::kBatchNormScopes, run_.model.batch_norm)));
  }
  return lines;
}

}  // namespace pal::dist
