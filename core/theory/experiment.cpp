#include "core/theory/experiment.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include "core/config/suggest.h"
#include "core/theory/figures.h"
#include "core/theory/one_thread.h"
#include "kernels/base/error.h"

namespace pal::theory {
namespace {

// One row per series of the three groups, in the order of the file.
Matrix stack(const TrialCurves& c, int64_t xs) {
  Matrix all(c.error.rows + c.mse.rows + c.also.rows, xs);
  int64_t at = 0;
  for (const Matrix* m : {&c.error, &c.mse, &c.also}) {
    std::copy(m->data.begin(), m->data.end(), all.data.begin() + at * xs);
    at += m->rows;
  }
  return all;
}

CurveStatistics statistics(const std::string& series, const std::vector<double>& x, const double* values,
                           int64_t trials, int64_t trial_stride) {
  CurveStatistics s{series, x, {}, {}};
  for (size_t k = 0; k < x.size(); ++k) {
    double mean = 0, square = 0;
    for (int64_t t = 0; t < trials; ++t) mean += values[t * trial_stride + static_cast<int64_t>(k)];
    mean /= static_cast<double>(trials);
    for (int64_t t = 0; t < trials; ++t)
      square += std::pow(values[t * trial_stride + static_cast<int64_t>(k)] - mean, 2);
    s.mean.push_back(mean);
    s.std.push_back(std::sqrt(square / static_cast<double>(trials)));
  }
  return s;
}

}  // namespace

const std::vector<FigureSpec>& figures() {
  static const std::vector<FigureSpec> all = {active_figure(),  contrastive_figure(), interpolation_figure(),
                                              missing_figure(), noise_figure(),       network_figure(),
                                              scale_figure()};
  return all;
}

const FigureSpec& figure(const std::string& name) {
  std::vector<std::string> names;
  for (const FigureSpec& f : figures()) {
    if (f.name == name) return f;
    names.push_back(f.name);
  }
  throw Error(Exit::usage, "no such experiment: " + name + "; the nearest is " + config::suggest(name, names) +
                               " (all of them: pal experiment --help)");
}

ExperimentOptions with_dataset(const FigureSpec& figure, ToyKind dataset) {
  ExperimentOptions options = figure.defaults;
  options.dataset = dataset;
  if (dataset == ToyKind::mixture) options.noise = 0.3;
  return options;
}

void check_experiment(const FigureSpec& figure, const ExperimentOptions& o) {
  PAL_CHECK(o.n >= 1, "--n", o.n, "give at least one training point");
  PAL_CHECK(o.test >= kToyClasses, "--test", o.test, "give at least one test point per class, 4");
  PAL_CHECK(o.trials >= 1, "--trials", o.trials, "give at least one");
  PAL_CHECK(o.steps >= 1, "--steps", o.steps, "give at least one");
  PAL_CHECK(o.batch >= 1, "--batch", o.batch, "ask at least one question a step");
  PAL_CHECK(o.orders >= 1 && o.views >= 1, "--orders", std::min(o.orders, o.views), "give at least one of each");
  PAL_CHECK(o.kernel.width >= 1 && o.kernel.width <= o.n * o.views, "--k", o.kernel.width,
            fmt::format("the representation can be at most as wide as there are points, {}", o.n * o.views));
  PAL_CHECK(o.kernel.sigma > 0 && std::isfinite(o.kernel.sigma), "--sigma", o.kernel.sigma, "give a width above 0");
  PAL_CHECK(o.kernel.lambda >= 0 && std::isfinite(o.kernel.lambda), "--lambda", o.kernel.lambda, "give 0 or more");
  PAL_CHECK(o.noise >= 0 && o.view_noise >= 0 && std::isfinite(o.noise + o.view_noise), "--noise", o.noise,
            "give 0 or more");
  PAL_CHECK(o.landmarks >= o.kernel.width, "--landmarks", o.landmarks,
            "give at least the width of the representation, " + std::to_string(o.kernel.width));
  PAL_CHECK(o.network_steps >= 1, "--network-steps", o.network_steps, "give at least one");
  for (double a : o.alphas) PAL_CHECK(a >= 0 && a <= 1, "--alpha", a, "give a share between 0 and 1");
  PAL_CHECK(figure.name != "interpolation" || (o.steps <= o.n && !o.alphas.empty()), "--steps", o.steps,
            "there are no more labels than samples, " + std::to_string(o.n));
  PAL_CHECK(figure.name != "noise" || o.steps * o.batch <= o.n, "--steps × --batch", o.steps * o.batch,
            "there are no more labels than points, " + std::to_string(o.n));
}

ToySet test_set(const ExperimentOptions& o) {
  Random random(o.seed, Purpose::theory, 1);
  return toy_test(o.dataset, o.test, o.noise, random);
}

Random trial_random(const ExperimentOptions& o, int64_t trial, uint32_t what) {
  return Random(o.seed, Purpose::theory, 2 + static_cast<uint64_t>(o.dataset), static_cast<uint64_t>(trial), what);
}

ExperimentResult run_figure(const FigureSpec& figure, const ExperimentOptions& options, comm::Comm& comm,
                            const std::function<void(int64_t, int64_t)>& progress) {
  check_experiment(figure, options);
  const ToySet test = test_set(options);
  const std::vector<double> x = figure.x(options);
  const std::vector<std::string> names = figure.series(options), also = figure.also_series(options);
  const auto xs = static_cast<int64_t>(x.size()), rows = static_cast<int64_t>(2 * names.size() + also.size());
  const at::Tensor values = at::zeros({options.trials, rows, xs}, at::kDouble);
  double* out = values.data_ptr<double>();

  const OneThread inside_a_trial;
  const int64_t mine = (options.trials - comm.rank() + comm.size() - 1) / comm.size();
  std::mutex mutex;
  std::exception_ptr error;
  int64_t done = 0;
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    const OneThread here;  // the limit is per thread
    for (int64_t k = next++; k < mine; k = next++) {
      try {
        const int64_t trial = k * comm.size() + comm.rank();
        const auto size = [&](size_t s) { return Matrix(static_cast<int64_t>(s), xs); };
        TrialCurves curves{size(names.size()), size(names.size()), size(also.size())};
        figure.trial(curves, options, test, trial);
        const Matrix all = stack(curves, xs);
        std::copy(all.data.begin(), all.data.end(), out + trial * rows * xs);
        std::lock_guard lock(mutex);
        if (progress) progress(++done, mine);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next = mine;
      }
    }
  };
  std::vector<std::thread> helpers;
  for (int64_t t = 1; t < std::min<int64_t>(options.threads, mine); ++t) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  if (error) std::rethrow_exception(error);
  comm.all_reduce(values);  // one rank computed each number; the others add 0

  ExperimentResult result;
  result.trials = options.trials;
  int64_t row = 0;
  const auto take = [&](std::vector<CurveStatistics>& group, const std::vector<std::string>& series) {
    for (const std::string& name : series)
      group.push_back(statistics(name, x, out + row++ * xs, options.trials, rows * xs));
  };
  take(result.error, names);
  take(result.mse, names);
  take(result.also, also);
  return result;
}

std::string experiment_csv(const std::vector<std::pair<std::string, std::vector<CurveStatistics>>>& datasets,
                           int64_t trials) {
  std::string csv = "dataset,series,x,mean,std,trials\n";
  for (const auto& [dataset, curves] : datasets) {
    for (const CurveStatistics& c : curves) {
      for (size_t k = 0; k < c.x.size(); ++k)
        csv +=
            fmt::format("{},{},{:.10g},{:.10g},{:.10g},{}\n", dataset, c.series, c.x[k], c.mean[k], c.std[k], trials);
    }
  }
  return csv;
}

}  // namespace pal::theory
