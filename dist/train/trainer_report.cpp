// trainer_report: what a run says: a line of metrics per logged step, warnings, and the table it begins with.
#include <fmt/format.h>

#include "core/data/image/nvjpeg_decoder.h"
#include "core/model/encoder.h"
#include "dist/train/trainer.h"
#include "kernels/base/error.h"
#include "kernels/base/isa.h"

namespace pal::dist {

void Trainer::log(StepReport& report, const at::Tensor& z, const loss::Batch& batch) {
  const bool looks = online_ && !report.skipped && (step_ % config_.integer("eval.every") == 0 || done());
  if (step_ % config_.integer("log.every") != 0 && !done() && !report.skipped && !looks) return;
  const eval::Diagnostics d = eval::diagnose(z, batch, world_.compute());
  if (looks && control_.watchdog) control_.watchdog->set_phase(Phase::long_operation);
  if (looks) share_statistics();
  const auto seen = looks ? online_->look(*encoder_, world_.compute()) : std::vector<std::pair<std::string, double>>{};
  if (rounds_ && !seen.empty()) rounds_->saw_figure(step_, seen.front().second);
  if (!metrics_) return;
  record::StepMetrics m;
  m.step = step_;
  m.epoch = static_cast<double>(step_) / static_cast<double>(epoch_.steps_per_epoch());
  m.loss = report.loss;
  m.terms = report.terms;
  m.lr = report.lr;
  m.images_per_s = report.images_per_s;
  m.graph_version = store_.version();
  m.queries = rounds_ ? rounds_->questions() : 0;
  m.cost = rounds_ ? rounds_->cost() : 0;
  m.effective_rank = d.effective_rank;
  m.sync_ms = 1000 * grads_->time().seconds;
  m.sync_hidden = grads_->time().hidden();
  m.diagnostics = {{"column_abs_mean", d.mean_abs_mean}, {"column_std", d.mean_std},
                   {"column_std_min", d.min_std},        {"unit_std", d.unit_std},
                   {"pairs_positive", d.positive_share}, {"pairs_negative", d.negative_share},
                   {"pairs_unknown", d.unknown_share},   {"loss_bytes", static_cast<double>(report.loss_bytes)}};
  if (rounds_) {
    const RoundTimes& t = rounds_->times();
    m.diagnostics.insert(
        m.diagnostics.end(),
        {{"round_embed_ms", t.embed_ms}, {"round_wait_ms", t.wait_ms}, {"round_choose_ms", t.choose_ms}});
  }
  m.diagnostics.insert(m.diagnostics.end(), seen.begin(), seen.end());
  if (config_.text("data.decoder") == "nvjpeg")
    m.diagnostics.emplace_back("left_to_libjpeg", static_cast<double>(loader_->report().left_to_libjpeg));
  if (!report.skipped) m.warning = collapse_.look(d, z.size(1));
  if (!m.warning.empty()) report.warning += (report.warning.empty() ? "" : "; ") + m.warning;
  try {
    metrics_->write(m);
  } catch (const Error& e) {  // a full disk is no reason to stop
    if (!metrics_fail_) warn(std::string(e.what()) + "; training goes on without its lines");
    metrics_fail_ = true;
  }
}

void Trainer::warn(const std::string& sentence) const {
  fmt::print(stderr, "{}warning: {}\n", world_.size() > 1 ? world_.prefix() + " " : "", sentence);
}

std::string Trainer::loader_text() const {
  const data::LoaderReport report = loader_->report();
  const int64_t threads = config_.integer("data.threads");
  return fmt::format("{} thread{} per rank, {} step{} ahead, at most {:.0f} MB", threads, threads == 1 ? "" : "s",
                     report.depth, report.depth == 1 ? "" : "s", report.bound_mb) +
         (config_.text("data.decoder") == "nvjpeg" ? ", JPEG files by nvJPEG " + data::nvjpeg_state().version : "");
}

std::vector<std::pair<std::string, std::string>> Trainer::summary() const {
  int64_t parameters = 0;
  for (const auto& p : encoder_->parameters()) parameters += p.numel();
  std::vector<std::pair<std::string, std::string>> lines = {
      {"data", fmt::format("{}, {} of {} samples", config_.text("data.train"), subset_.size(), data_->size())},
      {"model", fmt::format("{} + projector, {:.2f} M parameters", config_.text("model.backbone"),
                            static_cast<double>(parameters) / 1e6)},
      {"graph", fmt::format("{}, {} labels known", config_.text("graph.kind"), labeled_) +
                    (store_.edges().empty() ? "" : fmt::format(", {} weighted pairs", store_.edges().pairs()))},
      {"loss", config_.text("loss.kind")},
      {"steps",
       fmt::format("{} of {} samples, {} per epoch", schedule_.total_steps, epoch_.global_batch,
                   epoch_.steps_per_epoch()) +
           (edge_samples_ > 0 ? fmt::format(", and up to {} of which relations are known", edge_samples_) : "")},
      {"learning rate", fmt::format("{:g} peak, {}, {} warm-up steps", schedule_.peak, config_.text("optim.kind"),
                                    schedule_.warmup_steps)},
      {"ranks", fmt::format("{} × {} thread{} on {}, {}", world_.size(), threads_, threads_ == 1 ? "" : "s",
                            device_.is_cpu() ? "the CPU" : "a GPU each", kernels::isa_name(kernels::best_isa()))},
      {"loader", loader_text()},
      {"run folder", run_dir_},
  };
  if (!begins_with_.empty()) lines.insert(lines.begin() + 2, {"begins with", begins_with_});
  if (config_.text("model.batch_norm") != "global") {
    lines.emplace_back("batch norm", fmt::format("model.batch_norm={}: results depend on the number of ranks",
                                                 config_.text("model.batch_norm")));
  }
  return lines;
}

}  // namespace pal::dist
