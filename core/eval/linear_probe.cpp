#include "core/eval/linear_probe.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/optim/lbfgs.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"

namespace pal::eval {

Labeled known_rows(const at::Tensor& features, const std::vector<int64_t>& labels, int64_t classes, const char* what) {
  PAL_DATA_CHECK(
      static_cast<int64_t>(labels.size()) == features.size(0),
      std::string("the ") + what + " set has " + std::to_string(features.size(0)) + " samples but labels for",
      labels.size(), "evaluation needs labels: import the set with them");
  std::vector<int64_t> rows, kept;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0) continue;
    PAL_DATA_CHECK(labels[i] < classes,
                   std::string("label out of range in the ") + what + " set at sample " + std::to_string(i), labels[i],
                   "the set has " + std::to_string(classes) + " classes");
    rows.push_back(static_cast<int64_t>(i));
    kept.push_back(labels[i]);
  }
  PAL_DATA_CHECK(!rows.empty(), std::string("no sample of the ") + what + " set has a label", "",
                 "import it with labels");
  const bool all = rows.size() == labels.size();
  return {all ? features : features.index_select(0, at::tensor(rows)), at::tensor(kept)};
}

namespace {

// A linear map of standardized features: scores = ((x − mean) · scale) W + bias.
struct LinearMap {
  at::Tensor weight, bias;
};

// start: where the minimization begins; undefined tensors mean 0.
LinearMap fit_softmax(const at::Tensor& x, const at::Tensor& labels, int64_t classes, const ProbeOptions& options,
                      const LinearMap& start) {
  const int64_t n = x.size(0);
  at::Tensor w = start.weight.defined() ? start.weight.clone() : at::zeros({x.size(1), classes}, x.options());
  at::Tensor bias = start.bias.defined() ? start.bias.clone() : at::zeros({classes}, x.options());
  w.requires_grad_(true);
  bias.requires_grad_(true);
  torch::optim::LBFGS lbfgs({w, bias}, torch::optim::LBFGSOptions(1.0)
                                           .max_iter(options.iterations)
                                           .tolerance_grad(1e-6)
                                           .tolerance_change(1e-9)
                                           .history_size(10)
                                           .line_search_fn("strong_wolfe"));
  const at::Tensor target = labels.unsqueeze(1);
  lbfgs.step([&] {
    // The gradient in closed form: Xᵀ(softmax − one-hot)/n + λW.
    at::Tensor log_p = at::log_softmax(at::addmm(bias, x, w), 1);
    const at::Tensor loss = -log_p.gather(1, target).mean() + 0.5 * options.ridge * w.square().sum();
    at::Tensor residual = log_p.exp_();
    residual.scatter_add_(1, target, at::full({n, 1}, -1.0, x.options()));
    residual.div_(n);
    w.mutable_grad() = x.t().mm(residual).add_(w, options.ridge);
    bias.mutable_grad() = residual.sum(0);
    if (options.progress) options.progress();
    return loss;
  });
  return {w.detach(), bias.detach()};
}

// In fp64, because the normal equations square the condition number.
LinearMap fit_least_squares(const at::Tensor& x, const at::Tensor& labels, int64_t classes, const ProbeOptions& options,
                            const LinearMap& /*start*/) {
  const auto n = static_cast<double>(x.size(0));
  const at::Tensor wide = x.to(at::kDouble);
  at::Tensor target = at::full({x.size(0), classes}, -1.0, wide.options()).scatter_(1, labels.unsqueeze(1), 1.0);
  const at::Tensor bias = target.mean(0);
  target.sub_(bias);
  at::Tensor gram = wide.t().mm(wide).div_(n);
  gram.diagonal().add_(std::max(options.ridge, 1e-9));
  const at::Tensor weight = at::cholesky_solve(wide.t().mm(target).div_(n), at::linalg_cholesky(gram));
  return {weight.to(x.scalar_type()), bias.to(x.scalar_type())};
}

// Subtracts the training mean and divides by the deviation. A constant column becomes 0, instead of a division by 0.
struct Standardized {
  at::Tensor mean, scale;
  explicit Standardized(const at::Tensor& features) : mean(features.mean(0)) {
    const at::Tensor deviation = features.std(0, /*unbiased=*/false);
    scale = at::where(deviation > 1e-8, 1.0 / deviation, at::zeros_like(deviation));
  }
  at::Tensor operator()(const at::Tensor& features) const { return (features - mean) * scale; }
};

auto fit_of(ProbeMethod method) { return method == ProbeMethod::ridge ? fit_least_squares : fit_softmax; }

// Rows to fit and rows to choose by: at most kRidgeRows, evenly spaced, of which every fifth of a class is left out.
struct RidgeSplit {
  std::vector<int64_t> fitted, left_out;
  RidgeSplit(const at::Tensor& labels, int64_t classes) {
    const int64_t n = labels.size(0), used = std::min(n, kRidgeRows);
    const at::Tensor l = labels.contiguous();
    std::vector<int64_t> seen(static_cast<size_t>(classes), 0);
    for (int64_t k = 0; k < used; ++k) {
      const int64_t row = k * n / used;
      const bool out = ++seen[static_cast<size_t>(l.const_data_ptr<int64_t>()[row])] % 5 == 0;
      (out ? left_out : fitted).push_back(row);
    }
  }
};

}  // namespace

double choose_ridge(const at::Tensor& train, const std::vector<int64_t>& labels, int64_t classes,
                    const ProbeOptions& options) {
  const at::NoGradGuard no_grad;
  const Labeled all = known_rows(train, labels, classes, "training");
  const RidgeSplit split(all.labels, classes);
  if (split.left_out.empty()) return options.ridge;
  const at::Tensor fitted = at::tensor(split.fitted), left_out = at::tensor(split.left_out);
  const at::Tensor a = all.features.index_select(0, fitted), truth = all.labels.index_select(0, left_out);
  const Standardized standardized(a);
  const at::Tensor x = standardized(a), y = all.labels.index_select(0, fitted),
                   other = standardized(all.features.index_select(0, left_out));
  const double used =
      static_cast<double>(split.fitted.size() + split.left_out.size()) / static_cast<double>(all.labels.size(0));
  const auto distance = [&](double ridge) { return std::abs(std::log(ridge / std::max(options.ridge, 1e-12))); };
  double best = options.ridge;
  int64_t most = -1;
  LinearMap map;
  for (int power = 0; power >= -5; --power) {  // from the strongest on, each fit begins where the one before ended
    const double ridge = std::pow(10.0, power);
    ProbeOptions tried = options;
    tried.ridge = ridge / used;
    tried.iterations = options.iterations / 3;
    map = fit_of(options.method)(x, y, classes, tried, map);
    const auto right = at::addmm(map.bias, other, map.weight).argmax(1).eq(truth).sum().item<int64_t>();
    if (right > most || (right == most && distance(ridge) < distance(best))) best = ridge, most = right;
  }
  return best;
}

Accuracy linear_probe(const at::Tensor& train, const std::vector<int64_t>& train_labels, const at::Tensor& test,
                      const std::vector<int64_t>& test_labels, int64_t classes, const ProbeOptions& options) {
  const at::NoGradGuard no_grad;
  const Labeled a = known_rows(train, train_labels, classes, "training");
  const Labeled b = known_rows(test, test_labels, classes, "test");
  const Standardized standardized(a.features);
  const at::Tensor x = standardized(a.features);
  const LinearMap map = fit_of(options.method)(x, a.labels, classes, options, {});
  const at::Tensor scores = at::addmm(map.bias, standardized(b.features), map.weight);
  return tally(predictions_of(scores, b.labels), b.labels, classes, x.size(0));
}

}  // namespace pal::eval
