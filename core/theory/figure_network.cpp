// figure_network: the active figure learned by gradient descent with a small network, beside the closed form.
#include "core/theory/figures.h"
#include "core/theory/query_game.h"
#include "core/theory/small_network.h"

namespace pal::theory {
namespace {

constexpr int64_t kRoundsPerPoint = 5;  // of questions, between two points of the curves

void measure(TrialCurves& out, int64_t series, int64_t point, const Downstream& d) {
  out.error(series, point) = d.error;
  out.mse(series, point) = d.mse;
}

void measure_both(TrialCurves& out, int64_t series, int64_t point, KernelMethod& method, const Matrix& graph,
                  const ExperimentOptions& o, const ToySet& test, int64_t trial) {
  measure(out, series, point, method.downstream(method.fit(graph)));
  Random random = trial_random(o, trial, kNetworkStream + static_cast<uint32_t>(2 * point + series));
  NetworkOptions options;
  options.width = o.kernel.width;
  options.steps = o.network_steps;
  SmallNetwork network(method.train().x.cols, options, random);
  network.train(method.train().x, graph, random);
  measure(out, series + 1, point, probe_rows(network.forward(test.x), test.y));
}

void network_trial(TrialCurves& out, const ExperimentOptions& o, const ToySet& test, int64_t trial) {
  Random data = trial_random(o, trial, kDataStream), choices = trial_random(o, trial, kChoiceStream),
         order = trial_random(o, trial, kPairStream);
  KernelOptions kernel = o.kernel;
  kernel.cutoff = o.cutoff_scale / static_cast<double>(o.n);
  KernelMethod method(toy_train(o.dataset, o.n, o.noise, data), test, kernel);
  const std::vector<int>& labels = method.train().y;
  CaptchaGame game(labels, kToyClasses);
  const auto pairs = random_pairs(o.n, order);
  Matrix graph(o.n, o.n), passive = identity(o.n);
  size_t revealed = 0;
  for (int64_t point = 0; point < o.steps; ++point) {
    game.graph(graph, -1);
    measure_both(out, 0, point, method, graph, o, test, trial);
    measure_both(out, 2, point, method, passive, o, test, trial);
    for (int64_t round = 0; round < kRoundsPerPoint; ++round) {
      game.graph(graph, -1);
      game.answer(game.choose(method.predict_train(method.fit(graph), game.known()), o.batch, choices));
      for (int64_t b = 0; b < o.batch && revealed < pairs.size(); ++b, ++revealed) {
        const auto [i, j] = pairs[revealed];
        passive(i, j) = passive(j, i) = labels[i] == labels[j] ? 1 : -1;
      }
    }
  }
}

}  // namespace

FigureSpec network_figure() {
  FigureSpec f{"network",    "Closed form and a small network", "number of queries", {}, "", nullptr, nullptr, nullptr,
               network_trial};
  f.defaults.noise = 0.1;
  f.defaults.steps = 11;
  f.defaults.trials = 10;
  f.series = [](const ExperimentOptions&) {
    return std::vector<std::string>{"active, closed form", "active, network", "passive, closed form",
                                    "passive, network"};
  };
  f.also_series = [](const ExperimentOptions&) { return std::vector<std::string>{}; };
  f.x = [](const ExperimentOptions& o) {
    std::vector<double> x;
    for (int64_t k = 0; k < o.steps; ++k) x.push_back(static_cast<double>(k * o.batch * kRoundsPerPoint));
    return x;
  };
  return f;
}

}  // namespace pal::theory
