// run_summary: reads a run folder: config, metrics, evaluations, machines and state; for watch, runs and report.
//
// Reads files only, so that it works on any machine that can read the folder. A missing or cut file becomes a sentence
// in `notes`, not an error, unless the folder is not a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/record/metrics_reader.h"
#include "core/record/run_info.h"
#include "core/setup/run_spec.h"

namespace pal::launch {

struct EvalResult {
  std::string method;
  double top1 = 0, top5 = 0, low = 0, high = 0;
  int64_t train = 0, test = 0;
  std::vector<std::string> classes;             // with `confusion`
  std::vector<std::vector<int64_t>> confusion;  // true × predicted; or empty
};

struct RunSummary {
  std::string path, name;
  std::optional<setup::RunSpec> spec;  // none where its config.yaml cannot be read
  record::RunMetrics metrics;
  std::vector<EvalResult> evals;          // of eval.json
  std::string eval_file, eval_command;    // its path, and the command that made it ("": unknown)
  std::vector<record::RunInfo> machines;  // one entry per start
  int64_t checkpoint = -1;                // step of the newest one; −1: none
  int64_t step = 0, total = 0;            // total 0: not known yet
  std::string state;                      // done, running, stopped, new
  std::vector<std::string> notes;         // sentences: what is missing, cut or not finite
};

// Throws Error (usage) for a folder without config.yaml.
RunSummary summarize_run(const std::string& path);
// Folders below `folder` (itself included) that hold a run, by path.
std::vector<std::string> find_runs(const std::string& folder);
// Seconds between two logged lines, estimated from the lines; 0: unknown.
double seconds_per_step(const RunSummary& run);
// The best value of a curve while training, or of eval.json: the larger. NaN if there is none.
double best_accuracy(const RunSummary& run, const std::string& method);
// "87.19" of 0.8719; "-" if it is not finite.
std::string percent(double share);

}  // namespace pal::launch
