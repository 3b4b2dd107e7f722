#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/plot/plot.h"
#include "core/plot/svg.h"
#include "launch/report/html.h"
#include "launch/report/parts.h"

namespace pal::launch {
namespace {

constexpr size_t kPoints = 600;  // of a curve: more points than pixels are not visible

// What is drawn: a name of metrics.jsonl, or several that are summed up or divided.
struct Quantity {
  std::string title, unit, name;
  double scale = 1;
};

record::MetricCurve thinned(const record::MetricCurve& curve) {
  if (curve.x.size() <= kPoints) return curve;
  record::MetricCurve thin;
  for (size_t k = 0; k < kPoints; ++k) {
    const size_t i = k * (curve.x.size() - 1) / (kPoints - 1);
    thin.x.push_back(curve.x[i]);
    thin.y.push_back(curve.y[i]);
  }
  return thin;
}

void add_curve(plot::PlotPanel& panel, const std::string& name, record::MetricCurve curve, double scale, int color) {
  if (std::none_of(curve.y.begin(), curve.y.end(), [](double v) { return std::isfinite(v); })) return;
  curve = thinned(curve);
  for (double& v : curve.y) v *= scale;
  plot::PlotCurve drawn;
  drawn.name = name;
  drawn.x = std::move(curve.x);
  drawn.y = std::move(curve.y);
  drawn.color = color;
  panel.curves.push_back(std::move(drawn));
}

// Fraction of a step in which gradients were being reduced: sync_ms divided by the time of the step.
enum class CommPart { all, seen };  // seen: the part that does not overlap with backward
record::MetricCurve communication_share(const RunSummary& run, CommPart part) {
  record::MetricCurve share;
  if (!run.spec) return share;
  const auto batch = static_cast<double>(run.spec->train.global_batch);
  for (const record::MetricLine& line : run.metrics.lines) {
    const auto sync = line.values.find("sync_ms"), rate = line.values.find("images_per_s"),
               behind = line.values.find("sync_hidden");
    if (sync == line.values.end() || rate == line.values.end() || !(rate->second > 0)) continue;
    const double all = sync->second * rate->second / (1000 * batch);
    const double seen = behind == line.values.end() || !std::isfinite(behind->second) ? 0 : behind->second;
    share.x.push_back(static_cast<double>(line.step));
    share.y.push_back(part == CommPart::all ? all : all * (1 - seen));
  }
  return share;
}

// Where the curves come from, once for all figures: of each run the file, and the command that wrote it.
std::string sources_of(const std::vector<RunSummary>& runs) {
  std::string out;
  for (const RunSummary& run : runs) {
    const bool known = !run.machines.empty() && run.machines.back().contains("command");
    out += "<p>From <code>" + html_escaped(run.path + "/metrics.jsonl") + "</code>" +
           (known ? ", written by <code>" + html_escaped(run.machines.back().at("command")) + "</code>" : "") +
           ".</p>\n";
  }
  return out;
}

std::string figure(plot::PlotPanel panel, const std::string& caption) {
  if (panel.curves.empty()) return "";
  panel.x.label = "step";
  return html_figure(plot::svg_plot({panel}), caption, {});
}

}  // namespace

std::string curve_figures(const std::vector<RunSummary>& runs) {
  std::string out;
  const bool alone = runs.size() == 1;
  const auto named = [&](const RunSummary& run, const std::string& what) {
    return alone ? what : what.empty() ? run.name : run.name + " " + what;
  };
  const auto each = [&](const Quantity& q, const std::string& caption) {
    plot::PlotPanel panel;
    panel.title = q.title;
    panel.y.label = q.unit;
    for (size_t r = 0; r < runs.size(); ++r)
      add_curve(panel, named(runs[r], ""), record::metric_curve(runs[r].metrics, q.name), q.scale, static_cast<int>(r));
    out += figure(panel, caption);
  };
  each({"loss", "loss", "loss"}, "The global loss, by step.");
  for (const RunSummary& run : runs) {  // terms of different losses are not comparable: one figure per run
    plot::PlotPanel panel;
    panel.title = alone ? "terms of the loss" : run.name + ": terms";
    panel.y.label = "term";
    int color = 0;
    for (const std::string& name : record::metric_names(run.metrics, "terms."))
      add_curve(panel, name.substr(6), record::metric_curve(run.metrics, name), 1, color++);
    if (panel.curves.size() > 1) out += figure(panel, "The weighted terms whose sum is the loss.");
  }
  {
    plot::PlotPanel panel;
    panel.title = "accuracy while training";
    panel.y.label = "top-1 %";
    int color = 0;
    for (const RunSummary& run : runs) {
      add_curve(panel, named(run, "linear"), record::metric_curve(run.metrics, "eval_linear_top1"), 100, color);
      add_curve(panel, named(run, "kNN"), record::metric_curve(run.metrics, "eval_knn_top1"), 100,
                color + (alone ? 1 : 0));
      if (!panel.curves.empty() && !alone) panel.curves.back().stroke = plot::CurveStroke::dashed;
      color += alone ? 2 : 1;
    }
    out += figure(panel, "A ridge probe and kNN on frozen features of a sample of both sets (eval.every).");
  }
  each({"throughput", "images/s", "images_per_s"}, "Images per second over all ranks, of the logged steps.");
  {
    plot::PlotPanel panel;
    panel.title = "questions and their cost";
    panel.y.label = "questions";
    panel.right.label = "cost";
    for (size_t r = 0; r < runs.size(); ++r) {
      if (!(record::last_value(runs[r].metrics, "queries", 0) > 0)) continue;
      add_curve(panel, named(runs[r], "questions"), record::metric_curve(runs[r].metrics, "queries"), 1,
                static_cast<int>(r));
      add_curve(panel, named(runs[r], "cost"), record::metric_curve(runs[r].metrics, "cost"), 1,
                static_cast<int>(r) + (alone ? 1 : 0));
      panel.curves.back().side = plot::CurveSide::right;
      panel.curves.back().stroke = plot::CurveStroke::dashed;
    }
    out += figure(panel, "Questions whose answers training uses, and their cost.");
  }
  each({"effective rank of Z", "directions", "effective_rank"},
       "Number of directions that the embeddings of a batch use; 1 means collapse.");
  {
    plot::PlotPanel panel;
    panel.title = "communication";
    panel.y.label = "fraction of a step, %";
    for (size_t r = 0; r < runs.size(); ++r) {
      if (!(record::last_value(runs[r].metrics, "sync_ms", 0) > 0)) continue;  // one rank sends nothing
      add_curve(panel, named(runs[r], "all"), communication_share(runs[r], CommPart::all), 100, static_cast<int>(r));
      add_curve(panel, named(runs[r], "not hidden"), communication_share(runs[r], CommPart::seen), 100,
                static_cast<int>(r) + (alone ? 1 : 0));
      if (!alone && !panel.curves.empty()) panel.curves.back().stroke = plot::CurveStroke::dashed;
    }
    out += figure(
        panel,
        "Time of the gradient all-reduce as a fraction of the step, and the part that does not overlap with backward.");
  }
  each({"learning rate", "rate", "lr"}, "The learning rate.");
  each({"memory", "MB", "memory_mb"}, "Memory of rank 0.");
  return out.empty() ? "<p>No step was logged.</p>\n"
                     : sources_of(runs) + "<div class=\"figures\">\n" + out + "</div>\n";
}

std::string confusion_figure(const RunSummary& run) {
  const auto found =
      std::find_if(run.evals.begin(), run.evals.end(), [](const EvalResult& e) { return !e.confusion.empty(); });
  if (found == run.evals.end()) return "";
  const size_t n = found->classes.size();
  const double cell = n <= 12 ? 40 : std::max(6.0, 480.0 / static_cast<double>(n));
  size_t longest = 4;
  for (const std::string& name : found->classes) longest = std::max(longest, plot::svg_characters(name));
  const bool words = n <= 40;
  const double left = words ? 20 + 7.0 * static_cast<double>(longest) : 26, top = words ? left - 4 : 26;
  const double right = words ? 10 + 3.5 * static_cast<double>(longest) : 10;  // for the last name, which is slanted
  plot::SvgText svg(left + cell * static_cast<double>(n) + right, top + cell * static_cast<double>(n) + 26);
  for (size_t i = 0; i < n; ++i) {
    const int64_t total =
        std::max<int64_t>(std::accumulate(found->confusion[i].begin(), found->confusion[i].end(), int64_t{0}), 1);
    const double y = top + cell * static_cast<double>(i);
    if (words) {
      svg.text(left - 6, y + cell / 2 + 4, found->classes[i], "text-anchor=\"end\" class=\"tick\"");
      const double x = left + cell * (static_cast<double>(i) + 0.5);
      svg.raw(fmt::format("<g transform=\"translate({:.1f},{:.1f}) rotate(-60)\">", x + 3, top - 6));
      svg.text(0, 0, found->classes[i], "class=\"tick\"");
      svg.raw("</g>");
    }
    for (size_t j = 0; j < n; ++j) {
      const double share = static_cast<double>(found->confusion[i][j]) / static_cast<double>(total);
      const double x = left + cell * static_cast<double>(j);
      // Blue on the diagonal, red beside it; the root shows small shares.
      const double depth = std::sqrt(share);
      svg.rectangle(x, y, cell, cell,
                    fmt::format("fill=\"{}\" fill-opacity=\"{:.3f}\" stroke=\"#e6e8ec\" stroke-width=\"0.5\"",
                                i == j ? "#0072B2" : "#D55E00", depth));
      if (n <= 12 && found->confusion[i][j] > 0)
        svg.text(x + cell / 2, y + cell / 2 + 4, std::to_string(found->confusion[i][j]),
                 fmt::format("text-anchor=\"middle\" class=\"tick\" fill=\"{}\"", depth > 0.6 ? "#fff" : "#222"));
    }
  }
  svg.text(left, top + cell * static_cast<double>(n) + 18, "rows: true class, columns: predicted", "class=\"tick\"");
  return html_figure(
      svg.finish(),
      fmt::format("{}: confusion of {} on {} test samples, top-1 {:.2f} %.", run.name, found->method, found->test,
                  100 * found->top1),
      {!run.eval_command.empty() ? run.eval_command
                                 : "pal eval " + run.path + " " + found->method.substr(0, found->method.find(' ')) +
                                       " --json " + run.eval_file});
}

}  // namespace pal::launch
