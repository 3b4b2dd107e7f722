#include "core/eval/linear_probe.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/optim/lbfgs.h>

#include <algorithm>

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

LinearMap fit_softmax(const at::Tensor& x, const at::Tensor& labels, int64_t classes, const ProbeOptions& options) {
  const int64_t n = x.size(0);
  at::Tensor w = at::zeros({x.size(1), classes}, x.options()).requires_grad_(true);
  at::Tensor bias = at::zeros({classes}, x.options()).requires_grad_(true);
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
    return loss;
  });
  return {w.detach(), bias.detach()};
}

// In fp64, because the normal equations square the condition number.
LinearMap fit_least_squares(const at::Tensor& x, const at::Tensor& labels, int64_t classes,
                            const ProbeOptions& options) {
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

}  // namespace

Accuracy linear_probe(const at::Tensor& train, const std::vector<int64_t>& train_labels, const at::Tensor& test,
                      const std::vector<int64_t>& test_labels, int64_t classes, const ProbeOptions& options) {
  const at::NoGradGuard no_grad;
  const Labeled a = known_rows(train, train_labels, classes, "training");
  const Labeled b = known_rows(test, test_labels, classes, "test");

  const at::Tensor mean = a.features.mean(0);
  // A constant column becomes 0, instead of a division by 0.
  const at::Tensor deviation = a.features.std(0, /*unbiased=*/false);
  const at::Tensor scale = at::where(deviation > 1e-8, 1.0 / deviation, at::zeros_like(deviation));
  const at::Tensor x = (a.features - mean) * scale;
  const auto fit = options.method == ProbeMethod::ridge ? fit_least_squares : fit_softmax;
  const LinearMap map = fit(x, a.labels, classes, options);
  const at::Tensor scores = at::addmm(map.bias, (b.features - mean) * scale, map.weight);
  return tally(judge(scores, b.labels), b.labels, classes, x.size(0));
}

}  // namespace pal::eval
