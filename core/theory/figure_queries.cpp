// figure_queries: error against the number of questions: active against passive, graphs with and without negatives.
#include <algorithm>

#include "core/theory/figures.h"
#include "core/theory/query_game.h"

namespace pal::theory {
namespace {

std::vector<double> query_counts(const ExperimentOptions& o) {
  std::vector<double> x;
  for (int64_t k = 0; k < o.steps; ++k) x.push_back(static_cast<double>(k * o.batch));
  return x;
}

KernelMethod method_of_trial(const ExperimentOptions& o, const ToySet& test, int64_t trial) {
  Random random = trial_random(o, trial, kDataStream);
  KernelOptions kernel = o.kernel;
  kernel.cutoff = o.cutoff_scale / static_cast<double>(o.n);
  return KernelMethod(toy_train(o.dataset, o.n, o.noise, random), test, kernel);
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

}  // namespace pal::theory
