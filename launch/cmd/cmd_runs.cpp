// cmd_runs: pal runs DIR: lists the runs below a folder: state, best accuracy, and the settings in which they differ.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/config/config.h"
#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/run/run_summary.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

// For each run, the keys whose values differ between runs, with its values: as many as fit into `room`, and how many do
// not.
std::vector<std::string> differences(const std::vector<RunSummary>& runs, size_t room) {
  std::vector<std::string> texts(runs.size());
  std::vector<int> left_out(runs.size(), 0);
  constexpr size_t kRest = 9;  // " +99 more"
  for (const config::KeySpec& key : config::config_keys()) {
    std::map<std::string, int> values;
    for (const RunSummary& run : runs) {
      if (run.spec) ++values[run.spec->config.formatted(key.name)];
    }
    if (values.size() < 2) continue;
    for (size_t r = 0; r < runs.size(); ++r) {
      if (!runs[r].spec) continue;
      const std::string value = runs[r].spec->config.formatted(key.name);
      const std::string setting = key.name + "=" + (value.empty() ? "null" : value);
      if (texts[r].size() + 1 + setting.size() + kRest > room)
        ++left_out[r];
      else
        texts[r] += (texts[r].empty() ? "" : " ") + setting;
    }
  }
  for (size_t r = 0; r < runs.size(); ++r) {
    if (left_out[r] > 0) texts[r] += fmt::format("{}+{} more", texts[r].empty() ? "" : " ", left_out[r]);
  }
  return texts;
}

}  // namespace

int cmd_runs(const std::vector<std::string>& arguments, Context&) {
  std::string folder = "runs";
  CLI::App app("Lists the runs below a folder: state, best accuracy, and the settings in which they differ.",
               "pal runs");
  app.add_option("DIR", folder, "folder to search")->capture_default_str();
  app.footer(
      "Accuracies are the best of eval.json and of the evaluations while training (eval.every).\nExample:\n  pal runs "
      "runs");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;

  std::vector<RunSummary> runs;
  for (const std::string& path : find_runs(folder)) runs.push_back(summarize_run(path));
  PAL_CHECK(!runs.empty(), "there is no run below this folder", folder,
            "train one: pal train configs/quickstart.yaml --np 2");
  std::vector<std::vector<std::string>> rows = {
      {"run", "state", "step", "loss", "linear %", "kNN %", "images/s", "queries"}};
  for (size_t r = 0; r < runs.size(); ++r) {
    const RunSummary& run = runs[r];
    const double loss = record::last_value(run.metrics, "loss", std::nan("")),
                 rate = record::last_value(run.metrics, "images_per_s", std::nan(""));
    rows.push_back({run.path, run.state,
                    run.total > 0 ? fmt::format("{}/{}", run.step, run.total) : std::to_string(run.step),
                    std::isfinite(loss) ? fmt::format("{:.4g}", loss) : "-", percent(best_accuracy(run, "linear")),
                    percent(best_accuracy(run, "knn")), std::isfinite(rate) ? fmt::format("{:.0f}", rate) : "-",
                    fmt::format("{:.0f}", record::last_value(run.metrics, "queries", 0))});
  }
  const std::string table = format_table(rows);
  size_t used = 2;  // the longest line, and the space to the next column
  for (size_t begin = 0, end = 0; (end = table.find('\n', begin)) != std::string::npos; begin = end + 1)
    used = std::max(used, end - begin + 2);
  const std::vector<std::string> differ = differences(runs, kPageColumns - std::min(used, kPageColumns));
  rows[0].emplace_back("differs in");
  for (size_t r = 0; r < runs.size(); ++r) rows[r + 1].push_back(differ[r]);
  fmt::print("{}", format_table(rows));
  for (const RunSummary& run : runs) {
    for (const std::string& note : run.notes) fmt::print(stderr, "note: {}\n", printable(run.path + ": " + note));
  }
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::launch
