// metrics_reader: reads metrics.jsonl of a run: curves by name, warnings, state. Tolerates what a kill leaves behind.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace pal::record {

struct MetricLine {
  int64_t step = 0;
  std::map<std::string, double> values;  // "loss", "terms.invariance", "lr", …; NaN where the run had no finite number
};

struct RunMetrics {
  std::vector<MetricLine> lines;                          // of the logged steps, in the order of the steps
  std::vector<std::pair<int64_t, std::string>> warnings;  // step, sentence
  bool done = false;
  double seconds = 0;          // of the last start, once done
  std::string weights_sha256;  // once done
  int64_t bad_lines = 0;       // lines that are not a JSON object with a step
  double age_seconds = 0;      // since the file was last written to
};

// Throws Error (data) when there is no such file; of an empty or cut file it reads the complete lines.
RunMetrics read_metrics(const std::string& path);

// (step, value) of every line that has the name.
struct MetricCurve {
  std::vector<double> x, y;
};
MetricCurve metric_curve(const RunMetrics& metrics, const std::string& name);
// The names of all lines that begin with `prefix`, sorted.
std::vector<std::string> metric_names(const RunMetrics& metrics, const std::string& prefix);
// The last finite value, or `otherwise`.
double last_value(const RunMetrics& metrics, const std::string& name, double otherwise);
// Of the newest lines of the last start, with evaluations and checkpoints between them; 0 where fewer than two have a
// time.
double seconds_per_step(const RunMetrics& metrics);
// Numbers that were not finite: 0 in a healthy run.
int64_t not_finite(const RunMetrics& metrics, const std::string& name);

}  // namespace pal::record
