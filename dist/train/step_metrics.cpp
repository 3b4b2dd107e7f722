#include "core/loss/criterion.h"
#include "dist/train/run_observers.h"
#include "kernels/base/error.h"

namespace pal::dist {

void StepMetrics::after(const FinishedStep& done) {
  StepReport& report = done.report;
  const int64_t step = done.steps_done;
  const bool last = step >= of_.last_step;
  const bool looks = of_.online && !report.skipped && (step % of_.spec.eval.every == 0 || last);
  if (step % of_.spec.log.every != 0 && !last && !report.skipped && !looks) return;
  const eval::Diagnostics d = eval::diagnose(done.z, done.batch, of_.world.compute());
  if (looks && of_.watchdog) of_.watchdog->set_phase(Phase::long_operation);
  if (looks) of_.share_statistics();
  const auto seen =
      looks ? of_.online->look(of_.encoder, of_.world.compute()) : std::vector<std::pair<std::string, double>>{};
  if (of_.rounds && !seen.empty()) of_.rounds->saw_figure(step, seen.front().second);
  if (!of_.writer) return;
  record::StepMetrics m;
  m.step = step;
  m.epoch = static_cast<double>(step) / static_cast<double>(of_.steps_per_epoch);
  m.loss = report.loss;
  m.terms = report.terms;
  m.lr = report.lr;
  m.images_per_s = report.images_per_s;
  m.graph_version = of_.store.version();
  m.queries = of_.rounds ? of_.rounds->questions() : 0;
  m.cost = of_.rounds ? of_.rounds->cost() : 0;
  m.effective_rank = d.effective_rank;
  m.sync_ms = 1000 * of_.grads.time().seconds;
  m.sync_hidden = of_.grads.time().hidden();
  m.diagnostics = {{"column_abs_mean", d.mean_abs_mean},
                   {"column_std", d.mean_std},
                   {"column_std_min", d.min_std},
                   {"unit_std", d.unit_std},
                   {"pairs_positive", d.positive_share},
                   {"pairs_negative", d.negative_share},
                   {"pairs_unknown", d.unknown_share},
                   {"rows_with_partner", d.partnered_share},
                   {"loss_bytes", static_cast<double>(report.loss_bytes)}};
  if (of_.rounds) {
    const RoundTimes& t = of_.rounds->times();
    m.diagnostics.insert(
        m.diagnostics.end(),
        {{"round_embed_ms", t.embed_ms}, {"round_wait_ms", t.wait_ms}, {"round_choose_ms", t.choose_ms}});
  }
  m.diagnostics.insert(m.diagnostics.end(), seen.begin(), seen.end());
  if (of_.spec.data.decoder == data::Decoder::nvjpeg)
    m.diagnostics.emplace_back("left_to_libjpeg", static_cast<double>(of_.loader.report().left_to_libjpeg));
  if (!report.skipped) m.warning = collapse_.check(d, done.z.size(1));
  if (!m.warning.empty()) report.warning += (report.warning.empty() ? "" : "; ") + m.warning;
  try {
    of_.writer->write(m);
  } catch (const Error& e) {  // a full disk is no reason to stop
    if (!failed_) of_.warn(std::string(e.what()) + "; training continues without its lines");
    failed_ = true;
  }
}

}  // namespace pal::dist
