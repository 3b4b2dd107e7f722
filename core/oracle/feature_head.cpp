#include "core/oracle/feature_head.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/oracle/products.h"
#include "kernels/base/error.h"

namespace pal {
namespace {

// Σ of centred rows in double, eigenvalues descending; the sign of an axis by its largest element.
std::pair<at::Tensor, at::Tensor> axes_of(const at::Tensor& centred) {
  const int64_t dims = centred.size(1);
  std::vector<double> sums = scatter(centred);
  const at::Tensor sigma = at::from_blob(sums.data(), {dims, dims}, at::kDouble) / static_cast<double>(centred.size(0));
  auto [values, vectors] = at::linalg_eigh(sigma);
  vectors = vectors.flip(1);
  const at::Tensor largest = vectors.gather(0, vectors.abs().argmax(0, /*keepdim=*/true));
  return {values.flip(0).clamp_min(0), vectors * largest.sign()};
}

}  // namespace

Components principal_components(const at::Tensor& rows, int64_t width) {
  const at::NoGradGuard no_grad;
  const at::Tensor mean = rows.mean(0);
  const at::Tensor axes = axes_of((rows - mean).contiguous()).second;
  return {mean, axes.narrow(1, 0, std::min(width, rows.size(1))).to(at::kFloat).contiguous()};
}

at::Tensor Components::operator()(const at::Tensor& rows) const { return times((rows - mean).contiguous(), axes); }

std::vector<HeadOptions> head_candidates() {
  std::vector<HeadOptions> all;
  for (double ridge : {0.1, 0.01, 1.0}) {
    for (double prior : {4.0, 32.0, 256.0, 4096.0}) all.push_back({ridge, prior});
  }
  return all;
}

FeatureHead::FeatureHead(const at::Tensor& rows, int64_t width) : width_(std::min(width, rows.size(1))), mean_(rows.mean(0)) {
  const at::NoGradGuard no_grad;
  const at::Tensor centred = (rows - mean_).contiguous();
  std::tie(values_, axes_) = axes_of(centred);
  x_ = times(centred, axes_.to(at::kFloat).contiguous());
  graph_ = at::zeros_like(axes_);
  fit({});
}

void FeatureHead::see(const GraphStore& store) {
  const at::NoGradGuard no_grad;
  const int64_t n = x_.size(0), dims = x_.size(1);
  PAL_ASSERT(store.samples() == n, "a graph of the training set");
  graph_ = at::zeros({dims, dims}, at::kDouble);
  samples_ = 0;
  const auto rows_of = [&](const std::vector<int64_t>& samples) { return x_.index_select(0, at::tensor(samples, at::kLong)).to(at::kDouble); };
  if (store.deduction() == Deduction::on) {
    // Blocks: Σ_{i≠j∈c} x_i x_jᵀ = s sᵀ − Σ_i x_i x_iᵀ, each over |c| − 1.
    std::vector<int64_t> members, component;
    std::vector<double> weight;
    std::unordered_map<int64_t, int64_t> number;
    std::vector<double> rest;   // 1 / (|c| − 1)
    for (int64_t i = 0; i < n; ++i) {
      const int64_t size = store.component_size(i);
      if (size < 2) continue;
      const auto [at, fresh] = number.emplace(store.component(i), static_cast<int64_t>(number.size()));
      if (fresh) rest.push_back(1 / static_cast<double>(size - 1));
      members.push_back(i);
      component.push_back(at->second);
      weight.push_back(rest[at->second]);
    }
    samples_ = static_cast<double>(members.size());
    if (members.empty()) return;
    const at::Tensor rows = rows_of(members);
    at::Tensor sums = at::zeros({static_cast<int64_t>(number.size()), dims}, at::kDouble);
    sums.index_add_(0, at::tensor(component, at::kLong), rows);
    const at::Tensor by = at::tensor(rest, at::kDouble).unsqueeze(1), each = at::tensor(weight, at::kDouble).unsqueeze(1);
    graph_ = (sums * by).t().mm(sums) - (rows * each).t().mm(rows);
  } else {
    std::vector<int64_t> a, b;
    for (int64_t k = 0; k < store.answers(); ++k) {
      const Link link = store.answer(k);
      if (link.relation != Relation::same) continue;
      a.push_back(link.i);
      b.push_back(link.j);
    }
    samples_ = 2 * static_cast<double>(a.size());
    if (a.empty()) return;
    const at::Tensor half = rows_of(a).t().mm(rows_of(b));
    graph_ = half + half.t();
  }
}

void FeatureHead::fit(const HeadOptions& options) {
  const at::NoGradGuard no_grad;
  const at::Tensor shifted = values_ + options.ridge * values_.mean() + 1e-12, whiten = shifted.rsqrt();
  const double alpha = samples_ / (samples_ + options.prior * static_cast<double>(values_.size(0)));
  at::Tensor total = at::diag((1 - alpha) * values_ / shifted);
  if (samples_ > 0) total += (alpha / samples_) * whiten.unsqueeze(1) * graph_ * whiten;
  const at::Tensor vectors = std::get<1>(at::linalg_eigh(total)).flip(1).narrow(1, 0, width_);
  weight_ = (axes_ * whiten).mm(vectors).to(at::kFloat).contiguous();
}

at::Tensor FeatureHead::operator()(const at::Tensor& rows) const {
  const at::NoGradGuard no_grad;
  return times((rows - mean_).contiguous(), weight_);
}

HeadOptions choose_head(FeatureHead& head, const HeadSplit& split, const ProbeOptions& probe) {
  HeadOptions best;
  double most = -1;
  for (const HeadOptions& options : head_candidates()) {
    head.fit(options);
    const double top1 = linear_probe(head(split.train), split.train_labels, head(split.validation), split.validation_labels, split.classes, probe).top1;
    if (top1 > most) best = options, most = top1;
  }
  head.fit(best);
  return best;
}

}  // namespace pal
