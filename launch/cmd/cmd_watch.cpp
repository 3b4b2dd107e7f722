// cmd_watch: pal watch RUN: shows the progress of a run in a terminal, from any machine that can read the folder.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/run/run_summary.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

std::string age_text(double seconds) { return seconds < 1 ? "now" : format_seconds(seconds) + " ago"; }

// The effective rank of the embeddings counts the directions that they use.
std::string rank_warning(const record::RunMetrics& metrics) {
  const record::MetricCurve rank = record::metric_curve(metrics, "effective_rank");
  const auto most = std::max_element(rank.y.begin(), rank.y.end(), [](double a, double b) { return a < b; });
  if (rank.y.empty() || !(rank.y.back() < 0.5 * *most)) return "";
  return fmt::format(
      "the effective rank fell from {:.1f} at step {:.0f} to {:.1f}: the embeddings collapse; raise "
      "loss.variance or loss.covariance, or lower the learning rate",
      *most, rank.x[most - rank.y.begin()], rank.y.back());
}

std::string watch_text(const RunSummary& run, int columns) {
  ProgressState bar{printable(run.name), run.state, run.step, std::max(run.total, run.step), -1};
  const double step_seconds = seconds_per_step(run);
  if (run.state == "running" && run.total > run.step && step_seconds > 0)
    bar.eta_seconds = step_seconds * static_cast<double>(run.total - run.step);
  if (run.state == "done" && run.metrics.seconds > 0)
    bar.note = fmt::format("done in {}", format_seconds(run.metrics.seconds));
  std::string out = progress_line(bar, columns) + "\n\n";
  std::vector<std::vector<std::string>> rows = {{"what", "last", "first"}};
  const auto add = [&](const std::string& label, const std::string& name, const char* form, double scale = 1) {
    const record::MetricCurve curve = record::metric_curve(run.metrics, name);
    if (curve.y.empty()) return;
    const auto text = [&](double v) {
      return std::isfinite(v) ? fmt::format(fmt::runtime(form), scale * v) : "not finite";
    };
    rows.push_back({label, text(curve.y.back()), text(curve.y.front())});
  };
  add("loss", "loss", "{:.5g}");
  for (const std::string& name : record::metric_names(run.metrics, "terms."))
    add("  " + name.substr(6), name, "{:.5g}");
  add("learning rate", "lr", "{:.3g}");
  add("effective rank", "effective_rank", "{:.1f}");
  add("kNN top-1 %", "eval_knn_top1", "{:.2f}", 100);
  add("linear top-1 %", "eval_linear_top1", "{:.2f}", 100);
  add("images/s", "images_per_s", "{:.0f}");
  add("gradient sums, ms", "sync_ms", "{:.1f}");
  add("memory of rank 0, MB", "memory_mb", "{:.0f}");
  add("queries", "queries", "{:.0f}");
  add("cost", "cost", "{:.1f}");
  if (rows.size() > 1) out += format_table(rows) + "\n";
  out += fmt::format("epoch {:.2f}, last line {}, newest checkpoint {}\n", record::last_value(run.metrics, "epoch", 0),
                     age_text(run.metrics.age_seconds),
                     run.checkpoint < 0 ? "none" : "of step " + std::to_string(run.checkpoint));
  for (const std::string& note : run.notes) out += "note: " + printable(note) + "\n";
  if (const std::string fell = rank_warning(run.metrics); !fell.empty()) out += "warning: " + fell + "\n";
  const size_t alarms = run.metrics.warnings.size();
  for (size_t k = alarms > 3 ? alarms - 3 : 0; k < alarms; ++k)
    out += fmt::format("warning at step {}: {}\n", run.metrics.warnings[k].first,
                       printable(run.metrics.warnings[k].second));
  return out;
}

}  // namespace

int cmd_watch(const std::vector<std::string>& arguments, Context&) {
  std::string path;
  double every = 2;
  bool once = false;
  CLI::App app("Shows the progress of a run: loss terms, throughput, memory, questions, warnings.", "pal watch");
  app.add_option("RUN", path, "run folder")->required();
  app.add_option("--every", every, "seconds between updates")->check(CLI::Range(0.1, 3600.0))->capture_default_str();
  app.add_flag("--once", once, "print once and exit; the default when the output is not a terminal");
  app.footer("It exits when the run is done.\nExample:\n  pal watch runs/quickstart");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  const bool terminal = isatty(STDOUT_FILENO) != 0 && !once;
  for (;;) {
    const RunSummary run = summarize_run(path);
    const std::string text = watch_text(run, terminal ? 100 : 0);
    fmt::print("{}{}", terminal ? "\033[H\033[2J" : "", text);
    std::fflush(stdout);
    if (!terminal || run.state == "done") return static_cast<int>(Exit::ok);
    std::this_thread::sleep_for(std::chrono::duration<double>(every));
  }
}

}  // namespace pal::launch
