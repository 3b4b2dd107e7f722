// figures: the trials of the figures: questions, labels and landmarks. The network has figure_network.cpp.
#include "core/theory/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/theory/kernel_method.h"
#include "core/theory/query_game.h"
#include "core/theory/toy_data.h"

namespace pal::theory {

// queries: error against the number of questions: active against passive, graphs with and without negatives.
namespace {

std::vector<double> query_counts(const ExperimentOptions& o) {
  std::vector<double> x;
  for (int64_t k = 0; k < o.steps; ++k) x.push_back(static_cast<double>(k * o.batch));
  return x;
}

KernelOptions kernel_of(const ExperimentOptions& o, int64_t rows) {
  KernelOptions kernel = o.kernel;
  kernel.cutoff = o.cutoff_scale / static_cast<double>(rows);
  return kernel;
}

KernelMethod method_of_trial(const ExperimentOptions& o, const ToySet& test, int64_t trial) {
  Random random = trial_random(o, trial, kDataStream);
  return KernelMethod(toy_train(o.dataset, o.n, o.noise, random), test, kernel_of(o, o.n));
}

void record(TrialCurves& out, int64_t series, int64_t step, const Downstream& d) {
  out.error(series, step) = d.error;
  out.mse(series, step) = d.mse;
}

void active_trial(TrialCurves& out, const ExperimentOptions& o, const ToySet& test, int64_t trial) {
  KernelMethod method = method_of_trial(o, test, trial);
  const std::vector<int>& labels = method.train().y;
  CaptchaGame game(labels, kToyClasses);
  Random choices = trial_random(o, trial, kChoiceStream), order = trial_random(o, trial, kPairStream);
  const auto pairs = random_pairs(o.n, order);
  Matrix graph(o.n, o.n), passive = identity(o.n);
  size_t revealed = 0;
  for (int64_t step = 0; step < o.steps; ++step) {
    game.graph(graph, -1);
    const Matrix& v = method.fit(graph);
    record(out, 0, step, method.downstream(v));
    out.also(0, step) = static_cast<double>(game.questions());
    out.also(1, step) = static_cast<double>(game.entries());
    out.also(2, step) = 2 * static_cast<double>(revealed);
    game.answer(game.choose(method.predict_train(v, game.known()), o.batch, choices));

    record(out, 1, step, method.downstream(method.fit(passive)));
    for (int64_t b = 0; b < o.batch && revealed < pairs.size(); ++b, ++revealed) {
      const auto [i, j] = pairs[revealed];
      passive(i, j) = passive(j, i) = labels[i] == labels[j] ? 1 : -1;
    }
  }
}

void contrastive_trial(TrialCurves& out, const ExperimentOptions& o, const ToySet& test, int64_t trial) {
  KernelMethod method = method_of_trial(o, test, trial);
  CaptchaGame game(method.train().y, kToyClasses);
  Random choices = trial_random(o, trial, kChoiceStream);
  Matrix graph(o.n, o.n);
  for (int64_t step = 0; step < o.steps; ++step) {
    for (int64_t series = 0; series < 2; ++series) {
      game.graph(graph, series == 0 ? -1 : 0);
      record(out, series, step, method.downstream(method.fit(graph)));
    }
    game.answer(game.choose({}, o.batch, choices));
  }
}

}  // namespace

FigureSpec active_figure() {
  FigureSpec f{
      "active",    "Active against passive oracle", "number of queries", {}, "count", nullptr, nullptr, query_counts,
      active_trial};
  f.defaults.noise = 0.1;
  f.series = [](const ExperimentOptions&) { return std::vector<std::string>{"active", "passive"}; };
  f.also_series = [](const ExperimentOptions&) {
    return std::vector<std::string>{"active questions", "active entries of G", "passive entries of G"};
  };
  return f;
}

FigureSpec contrastive_figure() {
  FigureSpec f{"contrastive",
               "Graphs with and without negatives",
               "number of queries",
               {},
               "",
               nullptr,
               nullptr,
               query_counts,
               contrastive_trial};
  f.defaults.n = 300;
  f.series = [](const ExperimentOptions&) { return std::vector<std::string>{"contrastive", "non-contrastive"}; };
  f.also_series = [](const ExperimentOptions&) { return std::vector<std::string>{}; };
  return f;
}

// labels: error against known labels, missing entries and wrong labels: interpolation, missing, noise.
namespace {

std::vector<std::string> no_series(const ExperimentOptions&) { return {}; }
std::vector<std::string> error_series(const ExperimentOptions&) { return {"error"}; }

std::vector<int64_t> random_order(int64_t n, Random& random) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t k = n; k > 1; --k) std::swap(order[k - 1], order[random.below(static_cast<uint64_t>(k))]);
  return order;
}

// ---- interpolation: labels become known one by one; only the first view of a sample receives its label --------------

// Trial t is label order t % orders of data set t / orders.
void interpolation_trial(TrialCurves& out, const ExperimentOptions& o, const ToySet& test, int64_t trial) {
  Random data = trial_random(o, trial / o.orders, 0), order_random = trial_random(o, trial, 1);
  const ToySet clean = toy_train(o.dataset, o.n, o.noise, data);
  const ToySet train = toy_views(clean, o.views, o.view_noise, data);
  const int64_t rows = train.x.rows;
  KernelMethod method(train, test, kernel_of(o, rows));
  const std::vector<int64_t> order = random_order(o.n, order_random);
  Matrix ssl(rows, rows), labels(rows, rows), graph(rows, rows);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i / o.views * o.views; j < (i / o.views + 1) * o.views; ++j) ssl(i, j) = 1;
  }
  for (int64_t known = 0; known < o.steps; ++known) {
    for (size_t a = 0; a < o.alphas.size(); ++a) {
      // Without labels every α has the SSL graph, scaled by 1 − α relative to λ.
      for (size_t e = 0; e < graph.data.size(); ++e)
        graph.data[e] = (1 - o.alphas[a]) * ssl.data[e] + o.alphas[a] * labels.data[e];
      record(out, static_cast<int64_t>(a), known, method.downstream(method.fit(graph)));
    }
    const int64_t sample = order[known];
    for (int64_t k = 0; k <= known; ++k) {
      const bool same = clean.y[order[k]] == clean.y[sample];
      labels(order[k] * o.views, sample * o.views) = labels(sample * o.views, order[k] * o.views) = same;
    }
  }
}

std::vector<std::string> alpha_names(const ExperimentOptions& o) {
  std::vector<std::string> names;
  for (double a : o.alphas) names.push_back(fmt::format("alpha={:g}", a));
  return names;
}

std::vector<double> label_counts(const ExperimentOptions& o) {
  std::vector<double> x(o.steps);
  std::iota(x.begin(), x.end(), 0.0);
  return x;
}

// ---- missing: entries of the 0/1 graph are dropped, the diagonal too ------------------------------------------------

std::vector<double> missing_shares(const ExperimentOptions& o) {
  std::vector<double> p;
  for (int64_t k = 0; k < o.steps; ++k)
    p.push_back(o.steps == 1 ? 0.5 : 0.5 + 0.5 * static_cast<double>(k) / static_cast<double>(o.steps - 1));
  return p;
}

int64_t connected_components(const Matrix& graph) {
  std::vector<char> seen(graph.rows, 0);
  std::vector<int64_t> stack;
  int64_t components = 0;
  for (int64_t start = 0; start < graph.rows; ++start) {
    if (seen[start]) continue;
    ++components;
    seen[start] = 1;
    stack.push_back(start);
    while (!stack.empty()) {
      const double* row = graph.row(stack.back());
      stack.pop_back();
      for (int64_t j = 0; j < graph.cols; ++j) {
        if (row[j] == 0 || seen[j]) continue;
        seen[j] = 1;
        stack.push_back(j);
      }
    }
  }
  return components;
}

void missing_trial(TrialCurves& out, const ExperimentOptions& o, const ToySet& test, int64_t trial) {
  Random data = trial_random(o, trial, 0), drops = trial_random(o, trial, 1);
  const ToySet train = toy_train(o.dataset, o.n, o.noise, data);
  KernelMethod method(train, test, kernel_of(o, o.n));
  const std::vector<double> shares = missing_shares(o);
  Matrix graph(o.n, o.n);
  for (size_t k = 0; k < shares.size(); ++k) {
    for (int64_t i = 0; i < o.n; ++i) {
      for (int64_t j = 0; j <= i; ++j)
        graph(i, j) = graph(j, i) = train.y[i] == train.y[j] && drops.next_double() >= shares[k];
    }
    const auto at = static_cast<int64_t>(k);
    record(out, 0, at, method.downstream(method.fit(graph)));
    out.also(0, at) = static_cast<double>(connected_components(graph));
  }
}

// ---- noise: the full ±1 graph of labels, a growing share of them redrawn ----

std::vector<double> redrawn_counts(const ExperimentOptions& o) {
  std::vector<double> x;
  for (int64_t k = 1; k <= o.steps; ++k) x.push_back(static_cast<double>(k * o.batch));
  return x;
}

void noise_trial(TrialCurves& out, const ExperimentOptions& o, const ToySet& test, int64_t trial) {
  Random data = trial_random(o, trial, 0), wrong = trial_random(o, trial, 1);
  const ToySet train = toy_train(o.dataset, o.n, o.noise, data);
  KernelMethod method(train, test, kernel_of(o, o.n));
  const std::vector<int64_t> order = random_order(o.n, wrong);
  std::vector<int> labels = train.y;
  Matrix graph(o.n, o.n);
  for (int64_t step = 0; step < o.steps; ++step) {
    for (int64_t b = 0; b < o.batch; ++b)
      labels[order[step * o.batch + b]] = static_cast<int>(wrong.below(kToyClasses));
    for (int64_t i = 0; i < o.n; ++i) {
      for (int64_t j = 0; j < o.n; ++j) graph(i, j) = labels[i] == labels[j] ? 1 : -1;
    }
    record(out, 0, step, method.downstream(method.fit(graph)));
  }
}

}  // namespace

FigureSpec interpolation_figure() {
  FigureSpec f{"interpolation",
               "Labels mixed into the SSL graph",
               "number of labels",
               {},
               "",
               alpha_names,
               no_series,
               label_counts,
               interpolation_trial};
  f.defaults.n = 200;
  f.defaults.test = 500;
  f.defaults.kernel.sigma = 1;
  f.defaults.cutoff_scale = 0;
  f.defaults.steps = 200;
  f.defaults.batch = 1;
  f.defaults.trials = 50;  // 10 data sets × 5 label orders
  f.defaults.orders = 5;
  f.defaults.views = 2;
  f.defaults.alphas = {0.5, 1e-3, 1e-6};
  return f;
}

FigureSpec missing_figure() {
  FigureSpec f{"missing",
               "Missing entries of the graph",
               "share of missing entries",
               {},
               "connected components",
               error_series,
               nullptr,
               missing_shares,
               missing_trial};
  f.defaults.n = 100;
  f.defaults.steps = 20;
  f.also_series = [](const ExperimentOptions&) { return std::vector<std::string>{"components"}; };
  return f;
}

FigureSpec noise_figure() {
  FigureSpec f{"noise",
               "Labels redrawn at random",
               "number of redrawn labels",
               {},
               "",
               error_series,
               no_series,
               redrawn_counts,
               noise_trial};
  f.defaults.n = 300;
  f.defaults.steps = 30;
  return f;
}

// scale: error against the number of known labels on many points, through landmarks.
namespace {

// A geometric sequence from 8 labels to all of them.
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
    std::vector<char> known(o.n, 0);  // points are in random order, so the first ones are a random choice
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
