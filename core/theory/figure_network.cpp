// figure_network: the active figure, learned by gradient descent with a small network and in closed form.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>

#include "core/theory/figures.h"
#include "core/theory/matrix.h"
#include "core/theory/query_game.h"
#include "kernels/base/philox.h"

namespace pal::theory {
namespace {

// small_network: a perceptron with two hidden layers, trained by Adam on VIC² over mini-batches of a graph.
//
// Math:  per step B of n rows: Σ_{i,j in B} (z_iᵀz_j − G_ij)²/π_ij, π_ij the probability that both are drawn (unbiased
//        for ‖ZZᵀ − G‖²), plus the optimizer's weight decay.
// Thread: a trial runs on one thread, without LibTorch, because the matrices are only a few dozen columns wide.
struct NetworkOptions {
  int64_t hidden = 64, width = 5;
  int64_t steps = 1200, batch = 64;
  double rate = 3e-3;  // falls to 0 along a cosine
  double decay = 1e-4;
};

class SmallNetwork {
 public:
  SmallNetwork(int64_t inputs, const NetworkOptions& options, Random& random);
  Matrix forward(const Matrix& x) const;  // (n, width)
  void train(const Matrix& x, const Matrix& graph, Random& random);

 private:
  struct Layer {
    Matrix weight;  // (in + 1, out): the last row is the bias
    Matrix gradient, m, v;
  };
  static Matrix apply(const Layer& layer, const Matrix& x);
  static Matrix backward(Layer& layer, const Matrix& x, const Matrix& dy);  // fills the gradient; returns dx

  NetworkOptions options_;
  Layer layers_[3];
};

void tanh_in_place(Matrix& x) {
  for (double& v : x.data) v = std::tanh(v);
}

Matrix with_ones(const Matrix& x) {
  Matrix out(x.rows, x.cols + 1, 1);
  for (int64_t i = 0; i < x.rows; ++i) std::copy(x.row(i), x.row(i) + x.cols, out.row(i));
  return out;
}

void through_tanh(Matrix& gradient, const Matrix& output) {
  for (size_t k = 0; k < gradient.data.size(); ++k) gradient.data[k] *= 1 - output.data[k] * output.data[k];
}

SmallNetwork::SmallNetwork(int64_t inputs, const NetworkOptions& options, Random& random) : options_(options) {
  const int64_t sizes[4] = {inputs, options.hidden, options.hidden, options.width};
  for (int l = 0; l < 3; ++l) {
    Layer& layer = layers_[l];
    layer.weight = layer.gradient = layer.m = layer.v = Matrix(sizes[l] + 1, sizes[l + 1]);
    const double scale =
        // larger weights in the first layer, so that its kinks lie within the data
        (l == 0 ? 2.0 : 1.0) / std::sqrt(static_cast<double>(sizes[l]));
    for (double& w : layer.weight.data) w = scale * random.normal();
  }
}

Matrix SmallNetwork::apply(const Layer& layer, const Matrix& x) { return product(with_ones(x), layer.weight); }

Matrix SmallNetwork::backward(Layer& layer, const Matrix& x, const Matrix& dy) {
  layer.gradient = product_left_t(with_ones(x), dy);
  const Matrix dx = product_right_t(dy, layer.weight);
  Matrix out(x.rows, x.cols);
  for (int64_t i = 0; i < x.rows; ++i) std::copy(dx.row(i), dx.row(i) + x.cols, out.row(i));
  return out;
}

Matrix SmallNetwork::forward(const Matrix& x) const {
  Matrix h = apply(layers_[0], x);
  tanh_in_place(h);
  h = apply(layers_[1], h);
  tanh_in_place(h);
  return apply(layers_[2], h);
}

void SmallNetwork::train(const Matrix& x, const Matrix& graph, Random& random) {
  const int64_t n = x.rows, batch = std::min(options_.batch, n);
  const double one = static_cast<double>(batch) / static_cast<double>(n);  // probability that a row is drawn
  const double two = n > 1 ? one * static_cast<double>(batch - 1) / static_cast<double>(n - 1) : 1;
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  Matrix rows(batch, x.cols), weighted(batch, batch);
  for (int64_t t = 1; t <= options_.steps; ++t) {
    for (int64_t k = 0; k < batch; ++k) {
      std::swap(order[k], order[k + static_cast<int64_t>(random.below(static_cast<uint64_t>(n - k)))]);
      std::copy(x.row(order[k]), x.row(order[k]) + x.cols, rows.row(k));
    }
    Matrix h1 = apply(layers_[0], rows);
    tanh_in_place(h1);
    Matrix h2 = apply(layers_[1], h1);
    tanh_in_place(h2);
    const Matrix z = apply(layers_[2], h2), products = product_right_t(z, z);
    for (int64_t i = 0; i < batch; ++i) {
      // Relative to n² pairs, so that the rate does not depend on n.
      for (int64_t j = 0; j < batch; ++j)
        weighted(i, j) =
            4 * (products(i, j) - graph(order[i], order[j])) / (i == j ? one : two) / static_cast<double>(n * n);
    }
    Matrix d = backward(layers_[2], h2, product(weighted, z));
    through_tanh(d, h2);
    d = backward(layers_[1], h1, d);
    through_tanh(d, h1);
    backward(layers_[0], rows, d);

    const double rate =
        options_.rate *
        (1 + std::cos(std::numbers::pi * static_cast<double>(t) / static_cast<double>(options_.steps))) / 2;
    const double correct1 = 1 - std::pow(0.9, static_cast<double>(t)),
                 correct2 = 1 - std::pow(0.999, static_cast<double>(t));
    for (Layer& layer : layers_) {
      for (size_t k = 0; k < layer.weight.data.size(); ++k) {
        const double g = layer.gradient.data[k];
        layer.m.data[k] = 0.9 * layer.m.data[k] + 0.1 * g;
        layer.v.data[k] = 0.999 * layer.v.data[k] + 0.001 * g * g;
        const double step = layer.m.data[k] / correct1 / (std::sqrt(layer.v.data[k] / correct2) + 1e-8);
        layer.weight.data[k] -= rate * (step + options_.decay * layer.weight.data[k]);
      }
    }
  }
}

constexpr int64_t kRoundsPerPoint = 5;  // rounds of questions between two points of a curve

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
