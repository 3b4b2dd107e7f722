#include "launch/run/run_summary.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/io/files.h"
#include "core/io/json.h"
#include "core/record/checkpoint_folder.h"
#include "core/record/run_lock.h"
#include "kernels/base/error.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;
constexpr double kQuietSeconds =
    120;  // without a new line for this long, or for ten intervals, the run counts as stopped

std::vector<EvalResult> read_evals(const std::string& path, std::string& command, std::vector<std::string>& notes) {
  std::vector<EvalResult> found;
  if (!fs::exists(path)) return found;
  const auto value = io::parse_json<nlohmann::ordered_json>(io::read_whole_file(path));
  if (!value.is_object() || !value.contains("results") || !value["results"].is_array()) {
    notes.push_back(path + " is not a result of pal eval --json; evaluate again");
    return found;
  }
  try {
    command = value.value("command", std::string());
    for (const auto& r : value["results"]) {
      EvalResult e;
      r.at("method").get_to(e.method);
      r.at("top1").get_to(e.top1);
      e.top5 = r.value("top5", std::nan(""));
      e.low = r.value("low", std::nan(""));
      e.high = r.value("high", std::nan(""));
      e.train = r.value("train", int64_t{0});
      e.test = r.value("test", int64_t{0});
      if (r.contains("per_class")) {
        for (const auto& [name, share] : r["per_class"].items()) e.classes.push_back(name);
      }
      if (r.contains("confusion")) e.confusion = r["confusion"].get<std::vector<std::vector<int64_t>>>();
      const auto fits = [&](const auto& row) { return row.size() == e.classes.size(); };
      if (!fits(e.confusion) || !std::all_of(e.confusion.begin(), e.confusion.end(), fits)) e.confusion.clear();
      found.push_back(std::move(e));
    }
  } catch (const nlohmann::json::exception&) {
    notes.push_back(path + " is cut off or from another version of pal; evaluate again");
  }
  return found;
}

int64_t total_steps_of(const setup::TrainSpec& train, const record::RunMetrics& metrics) {
  if (train.steps) return *train.steps;
  for (const record::MetricLine& line : metrics.lines) {  // steps per epoch, from a line that has both
    const auto epoch = line.values.find("epoch");
    if (epoch != line.values.end() && epoch->second > 0 && train.epochs)
      return std::llround(static_cast<double>(*train.epochs) * static_cast<double>(line.step) / epoch->second);
  }
  return 0;
}

std::string state_of(const RunSummary& run) {
  if (run.metrics.done) return "done";
  if (run.metrics.lines.empty() && run.checkpoint < 0) return "new";
  if (record::RunLock::held(run.path)) return "running";
  // On the host of the last start a free lock means that the job has ended; other hosts may not see its lock.
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  if (!run.machines.empty() && run.machines.back().contains("host") && run.machines.back().at("host") == host)
    return "stopped";
  const double between =
      run.metrics.lines.size() < 2
          ? 0
          : seconds_per_step(run) * static_cast<double>(run.metrics.lines.back().step -
                                                        run.metrics.lines[run.metrics.lines.size() - 2].step);
  return run.metrics.age_seconds < std::max(kQuietSeconds, 10 * between) ? "running" : "stopped";
}

}  // namespace

double seconds_per_step(const RunSummary& run) {
  if (const double measured = record::seconds_per_step(run.metrics); measured > 0) return measured;
  const double rate = record::last_value(run.metrics, "images_per_s", 0);
  return rate > 0 && run.spec ? static_cast<double>(run.spec->train.global_batch) / rate : 0;
}

std::string percent(double share) { return std::isfinite(share) ? fmt::format("{:.2f}", 100 * share) : "-"; }

double best_accuracy(const RunSummary& run, const std::string& method) {
  double best = std::nan("");
  for (const double v : record::metric_curve(run.metrics, "eval_" + method + "_top1").y) best = std::fmax(best, v);
  for (const EvalResult& e : run.evals) {
    if (e.method.starts_with(method)) best = std::fmax(best, e.top1);
  }
  return best;
}

std::vector<std::string> find_runs(const std::string& folder) {
  PAL_CHECK(fs::is_directory(folder), "this folder does not exist", folder, "give the folder that holds the runs");
  std::vector<std::string> found;
  if (fs::exists(folder + "/config.yaml")) found.push_back(folder);
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
       it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (error) break;
    if (it->path().filename() == "checkpoints") it.disable_recursion_pending();
    if (it->is_directory(error) && fs::exists(it->path() / "config.yaml")) found.push_back(it->path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

RunSummary summarize_run(const std::string& path) {
  PAL_CHECK(fs::is_directory(path), "this run folder does not exist", path,
            "give the run folder that pal train printed");
  PAL_CHECK(fs::exists(path + "/config.yaml"), "the folder holds no run (no config.yaml)", path, "give a run folder");
  RunSummary run;
  run.path = path;
  run.name = fs::path(path).lexically_normal().filename().string();
  if (run.name.empty()) run.name = fs::path(path).lexically_normal().parent_path().filename().string();
  try {
    run.spec = setup::make_run_spec(config::Config::load_resolved(path + "/config.yaml"));
  } catch (const Error& e) {
    run.notes.push_back("its config.yaml does not fit this version of pal: " + std::string(e.what()));
  }
  if (fs::exists(path + "/metrics.jsonl")) {
    run.metrics = record::read_metrics(path + "/metrics.jsonl");
    if (run.metrics.lines.empty()) run.notes.push_back("its metrics.jsonl has no logged step yet");
    if (run.metrics.bad_lines > 0)
      run.notes.push_back(fmt::format("{} line(s) of its metrics.jsonl are cut off or not JSON and were skipped",
                                      run.metrics.bad_lines));
  } else {
    run.notes.push_back("it has no metrics.jsonl: nothing was logged");
  }
  const int64_t broken = record::not_finite(run.metrics, "loss");
  if (broken > 0) run.notes.push_back(fmt::format("its loss was not finite in {} logged step(s)", broken));
  run.machines = record::read_run_info(path);
  std::set<std::string> versions;
  for (const record::RunInfo& info : run.machines) {
    if (info.contains("pal") && info.contains("torch"))
      versions.insert("pal " + info.at("pal") + " with LibTorch " + info.at("torch"));
  }
  if (versions.size() > 1) {
    std::string all;
    for (const std::string& v : versions) all += (all.empty() ? "" : ", ") + v;
    run.notes.push_back("several versions of pal trained it: " + all);
  }
  const std::vector<int64_t> steps = record::checkpoint_steps(path);
  if (!steps.empty())
    run.checkpoint = steps.front();
  else
    run.notes.push_back("it has no checkpoint, so it cannot be evaluated");
  run.eval_file = path + "/eval.json";
  run.evals = read_evals(run.eval_file, run.eval_command, run.notes);
  run.step = run.metrics.lines.empty() ? std::max<int64_t>(run.checkpoint, 0) : run.metrics.lines.back().step;
  run.total = run.spec ? total_steps_of(run.spec->train, run.metrics) : 0;
  run.state = state_of(run);
  if (run.state == "stopped" && run.step > run.checkpoint)
    run.notes.push_back(
        fmt::format("it ended after step {} without a checkpoint of it; the same command resumes from {}", run.step,
                    run.checkpoint < 0 ? "step 0" : fmt::format("step {}", run.checkpoint)));
  return run;
}

}  // namespace pal::launch
