#include "core/record/metrics_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/io/files.h"
#include "core/io/json.h"
#include "kernels/base/error.h"

namespace pal::record {
namespace {

void take_numbers(const nlohmann::json& object, const std::string& prefix, std::map<std::string, double>& into) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_number()) into[prefix + name] = value.get<double>();
    if (value.is_null()) into[prefix + name] = std::nan("");
    if (value.is_object()) take_numbers(value, prefix + name + ".", into);
  }
}

}  // namespace

RunMetrics read_metrics(const std::string& path) {
  RunMetrics run;
  const std::string text = io::read_whole_file(path);
  struct stat info {};
  if (stat(path.c_str(), &info) == 0) {
    const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    run.age_seconds = std::max(
        0.0, now - static_cast<double>(info.st_mtim.tv_sec) - 1e-9 * static_cast<double>(info.st_mtim.tv_nsec));
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    const auto value = io::parse_json(line);
    if (!value.is_object() || !value.contains("step") || !value["step"].is_number_integer()) {
      ++run.bad_lines;
      continue;
    }
    const auto step = value["step"].get<int64_t>();
    if (value.value("done", nlohmann::json()) == true) {
      run.done = true;
      if (value.contains("seconds") && value["seconds"].is_number()) run.seconds = value["seconds"];
      if (value.contains("weights_sha256") && value["weights_sha256"].is_string())
        run.weights_sha256 = value["weights_sha256"];
      continue;
    }
    run.done = false;  // a run that was extended after its end
    MetricLine read{step, {}};
    take_numbers(value, "", read.values);
    run.lines.push_back(std::move(read));
    if (value.contains("warning") && value["warning"].is_string())
      run.warnings.emplace_back(step, value["warning"].get<std::string>());
  }
  std::stable_sort(run.lines.begin(), run.lines.end(),
                   [](const MetricLine& a, const MetricLine& b) { return a.step < b.step; });
  return run;
}

MetricCurve metric_curve(const RunMetrics& metrics, const std::string& name) {
  MetricCurve curve;
  for (const MetricLine& line : metrics.lines) {
    const auto found = line.values.find(name);
    if (found == line.values.end()) continue;
    curve.x.push_back(static_cast<double>(line.step));
    curve.y.push_back(found->second);
  }
  return curve;
}

std::vector<std::string> metric_names(const RunMetrics& metrics, const std::string& prefix) {
  std::set<std::string> names;
  for (const MetricLine& line : metrics.lines) {
    for (const auto& item : line.values) {
      if (item.first.starts_with(prefix)) names.insert(item.first);
    }
  }
  return {names.begin(), names.end()};
}

double last_value(const RunMetrics& metrics, const std::string& name, double otherwise) {
  const MetricCurve curve = metric_curve(metrics, name);
  const auto found = std::find_if(curve.y.rbegin(), curve.y.rend(), [](double v) { return std::isfinite(v); });
  return found == curve.y.rend() ? otherwise : *found;
}

double seconds_per_step(const RunMetrics& metrics) {
  constexpr ptrdiff_t kLines = 20;
  const MetricCurve time = metric_curve(metrics, "seconds");
  const ptrdiff_t last = std::ssize(time.y) - 1;
  ptrdiff_t first = last;
  while (first > 0 && last - first < kLines && time.y[first - 1] < time.y[first]) --first;  // not of an earlier start
  return first >= last ? 0 : (time.y[last] - time.y[first]) / (time.x[last] - time.x[first]);
}

int64_t not_finite(const RunMetrics& metrics, const std::string& name) {
  const MetricCurve curve = metric_curve(metrics, name);
  return std::count_if(curve.y.begin(), curve.y.end(), [](double v) { return !std::isfinite(v); });
}

}  // namespace pal::record
