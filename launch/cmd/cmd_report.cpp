// cmd_report: pal report RUN…: writes one self-contained HTML page about one run or several.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/io/cores.h"
#include "core/setup/setup.h"
#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/report/html.h"
#include "launch/report/parts.h"
#include "launch/run/device_option.h"
#include "launch/run/output_file.h"
#include "launch/run/run_summary.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string number(double v, const char* form) { return std::isfinite(v) ? fmt::format(fmt::runtime(form), v) : "-"; }

std::string overview(const std::vector<RunSummary>& runs) {
  Rows rows = {{"run", "state", "step", "loss", "linear %", "kNN %", "images/s", "questions", "cost", "ranks", "time"}};
  std::string notes;
  for (const RunSummary& run : runs) {
    const auto ranks = run.machines.empty()                    ? std::string("-")
                       : run.machines.back().contains("ranks") ? run.machines.back().at("ranks")
                                                               : "-";
    rows.push_back({run.name, run.state,
                    run.total > 0 ? fmt::format("{} of {}", run.step, run.total) : std::to_string(run.step),
                    number(record::last_value(run.metrics, "loss", std::nan("")), "{:.4g}"),
                    percent(best_accuracy(run, "linear")), percent(best_accuracy(run, "knn")),
                    number(record::last_value(run.metrics, "images_per_s", std::nan("")), "{:.0f}"),
                    number(record::last_value(run.metrics, "queries", 0), "{:.0f}"),
                    number(record::last_value(run.metrics, "cost", 0), "{:.1f}"), ranks,
                    run.metrics.seconds > 0 ? format_seconds(run.metrics.seconds) : "-"});
    for (const std::string& note : run.notes)
      notes += "<p class=\"note\">" + html_escaped(run.name + ": " + note) + "</p>\n";
    for (const auto& [step, warning] : run.metrics.warnings)
      notes +=
          "<p class=\"note\">" + html_escaped(fmt::format("{}: at step {}: {}", run.name, step, warning)) + "</p>\n";
  }
  return html_table(rows) + notes;
}

std::string evaluations(const std::vector<RunSummary>& runs) {
  Rows rows = {{"run", "method", "top-1 %", "95 %", "top-5 %", "train", "test"}};
  std::string figures;
  for (const RunSummary& run : runs) {
    for (const EvalResult& e : run.evals) {
      rows.push_back({run.name, e.method, percent(e.top1),
                      std::isfinite(e.low) ? percent(e.low) + " to " + percent(e.high) : "-", percent(e.top5),
                      std::to_string(e.train), std::to_string(e.test)});
    }
    figures += confusion_figure(run);
  }
  if (rows.size() == 1) {
    const auto tested = std::find_if(runs.begin(), runs.end(),
                                     [](const RunSummary& run) { return run.spec && !run.spec->data.test.empty(); });
    if (tested == runs.end())
      return "<p>No evaluation: without a test set (data.test) there is nothing to measure on.</p>\n";
    return "<p>No run has an evaluation. Make one: <code>" + html_escaped("pal eval " + tested->path) + "</code></p>\n";
  }
  return html_table(rows) + "<p>95 %: bootstrap over the test samples.</p>\n<div class=\"figures\">" + figures +
         "</div>\n";
}

std::string configs(const std::vector<RunSummary>& runs) {
  std::string out;
  if (runs.size() > 1) {
    Rows rows = {{"key"}};
    for (const RunSummary& run : runs) rows[0].push_back(run.name);
    for (const config::KeySpec& key : config::config_keys()) {
      std::map<std::string, int> values;
      std::vector<std::string> row = {key.name};
      for (const RunSummary& run : runs) {
        row.push_back(run.spec ? run.spec->config.formatted(key.name) : "");
        ++values[row.back()];
      }
      if (values.size() > 1) rows.push_back(row);
    }
    out += rows.size() > 1 ? "<h3>Where they differ</h3>\n" + html_table(rows) : "<p>All settings are the same.</p>\n";
  }
  for (const RunSummary& run : runs) {
    if (!run.spec) continue;
    out += "<details" + std::string(runs.size() == 1 ? " open" : "") + "><summary>" + html_escaped(run.name) +
           ": all settings, <code>" + html_escaped(run.path + "/config.yaml") + "</code></summary><pre>" +
           html_escaped(run.spec->config.dump()) + "</pre></details>\n";
  }
  return out;
}

std::string machines(const std::vector<RunSummary>& runs) {
  Rows rows = {{"run", "started", "host", "CPU", "cores", "memory", "ranks", "pal", "LibTorch", "command"}};
  std::map<std::string, int> versions;
  for (const RunSummary& run : runs) {
    for (const record::RunInfo& info : run.machines) {
      const auto field = [&](const char* name) { return info.contains(name) ? info.at(name) : std::string("-"); };
      rows.push_back({run.name, field("started"), field("host"), field("cpu"), field("cores"), field("memory"),
                      field("ranks"), field("pal"), field("torch"), field("command")});
      ++versions[field("pal") + " / " + field("torch")];
    }
  }
  std::string out =
      rows.size() > 1 ? html_table(rows) : "<p>The run folders do not record where they were trained.</p>\n";
  if (versions.size() > 1)
    out +=
        "<p class=\"note\">These runs were trained by different versions of pal or LibTorch. That alone may change "
        "results.</p>\n";
  return out;
}

}  // namespace

int cmd_report(const std::vector<std::string>& arguments, Context& context) {
  std::vector<std::string> paths;
  std::string out, device;
  bool without_samples = false;
  SampleOptions options;
  CLI::App app("Writes one self-contained HTML page about one run or several.", "pal report");
  app.add_option("RUN", paths, "run folders, or folders of runs")->required();
  app.add_option("--out", out, "page to write; default report.html in the first run folder");
  app.add_flag("--no-samples", without_samples, "leave out the parts that need the encoder and the data");
  app.add_option("--embed", options.train, "number of training samples to search for neighbors")
      ->check(CLI::Range(10, 1000000))
      ->capture_default_str();
  add_device_option(app, device);
  app.footer(
      "The page loads nothing from other places: it can be mailed and opened without a network.\nExamples:\n"
      "  pal report runs/quickstart/ssl\n  pal report runs/quickstart/ssl runs/quickstart/mixed --out compare.html");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;
  if (out.empty()) out = paths.front() + "/report.html";

  std::vector<RunSummary> runs;
  for (const std::string& path : paths) {
    const bool is_run = std::filesystem::exists(path + "/config.yaml") || !std::filesystem::is_directory(path);
    const std::vector<std::string> found = is_run ? std::vector{path} : find_runs(path);
    PAL_CHECK(!found.empty(), "there is no run below this folder", path, "give run folders, or a folder of them");
    for (const std::string& run : found) runs.push_back(summarize_run(run));
  }
  OutputFile page(out);  // a place that cannot be written is found before the work
  std::map<std::string, int> seen;
  for (const RunSummary& run : runs) ++seen[run.name];
  for (RunSummary& run : runs) {
    if (seen[run.name] > 1) run.name = run.path;  // two runs of one name are shown by their folders
  }
  at::set_num_threads(io::usable_cores());
  std::vector<SampleParts> parts(runs.size());
  for (size_t r = 0; r < runs.size() && !without_samples; ++r) {
    dist::World& world = context.start_world();
    PAL_CHECK(world.size() == 1, "pal report runs on one rank, but was started on", world.size(),
              "start it without mpirun");
    if (runs[r].spec) options.device = encoder_device(device, runs[r].spec->train, world);
    parts[r] = sample_parts(runs[r], options);
  }

  std::string title = runs.size() == 1 ? "Run " + runs.front().name : fmt::format("{} runs", runs.size()),
              command = "pal report";
  for (const std::string& path : paths) command += " " + path;
  std::string body = "<h1>" + html_escaped(title) + "</h1>\n<p class=\"lead\"><code>" + html_escaped(command) +
                     "</code>, pal " PAL_VERSION "</p>\n";
  std::string sections, links;
  const auto add = [&](const std::string& id, const std::string& heading, const std::string& content) {
    if (content.empty()) return;
    links += "<a href=\"#" + id + "\">" + html_escaped(heading) + "</a>";
    sections += html_section(id, heading, content);
  };
  add("overview", "Overview", overview(runs));
  add("curves", "Curves", curve_figures(runs));
  add("evaluation", "Evaluation", evaluations(runs));
  std::string planes;
  for (const SampleParts& part : parts) planes += part.plane;
  if (!planes.empty()) add("plane", "The features in the plane", "<div class=\"figures\">" + planes + "</div>\n");
  for (size_t r = 0; r < runs.size(); ++r)
    add(fmt::format("neighbors-{}", r), "Samples and their nearest neighbors: " + runs[r].name, parts[r].neighbors);
  for (size_t r = 0; r < runs.size(); ++r)
    add(fmt::format("questions-{}", r), "Questions and answers: " + runs[r].name, question_table(runs[r], options));
  add("config", "Settings", configs(runs));
  add("machine", "Machines and versions", machines(runs));
  page.write(html_page(title, body + "<nav>" + links + "</nav>\n" + sections));
  fmt::print("{} ({:.0f} kB)\n", out, static_cast<double>(std::filesystem::file_size(out)) / 1000);
  for (const RunSummary& run : runs) {
    for (const std::string& note : run.notes) fmt::print(stderr, "note: {}\n", printable(run.path + ": " + note));
  }
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::launch
