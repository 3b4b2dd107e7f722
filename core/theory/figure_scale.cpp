// figure_scale: error against the number of known labels on many points, through landmarks (nystrom.h).
#include <algorithm>
#include <cmath>

#include "core/theory/figures.h"
#include "core/theory/nystrom.h"

namespace pal::theory {
namespace {

// From 8 labels to all of them, in equal ratios.
std::vector<double> scale_counts(const ExperimentOptions& o) {
  std::vector<double> x;
  const auto n = static_cast<double>(o.n), first = std::min(8.0, n);
  for (int64_t k = 0; k < o.steps; ++k)
    x.push_back(std::round(
        first * std::pow(n / first, o.steps == 1 ? 1 : static_cast<double>(k) / static_cast<double>(o.steps - 1))));
  return x;
}

void scale_trial(TrialCurves& out, const ExperimentOptions& o, const ToySet& test, int64_t trial) {
  Random data = trial_random(o, trial, kDataStream);
  NystromOptions options;
  options.kernel = o.kernel;
  options.landmarks = std::min(o.landmarks, o.n);
  const NystromMethod method(toy_train(o.dataset, o.n, o.noise, data), options);
  const std::vector<double> counts = scale_counts(o);
  for (size_t k = 0; k < counts.size(); ++k) {
    std::vector<char> known(o.n, 0);  // points come in random order: the first ones are a random choice
    std::fill_n(known.begin(), static_cast<int64_t>(counts[k]), 1);
    const Downstream d = probe_rows(method.represent(test.x, method.fit(known)), test.y);
    out.error(0, static_cast<int64_t>(k)) = d.error;
    out.mse(0, static_cast<int64_t>(k)) = d.mse;
  }
}

}  // namespace

FigureSpec scale_figure() {
  FigureSpec f{"scale",
               "Many points through landmarks",
               "number of known labels",
               {},
               "",
               nullptr,
               nullptr,
               scale_counts,
               scale_trial,
               plot::AxisScale::log};
  f.defaults.n = 20000;
  f.defaults.noise = 0.1;
  f.defaults.steps = 8;
  f.defaults.trials = 3;
  f.series = [](const ExperimentOptions&) { return std::vector<std::string>{"error"}; };
  f.also_series = [](const ExperimentOptions&) { return std::vector<std::string>{}; };
  return f;
}

}  // namespace pal::theory
