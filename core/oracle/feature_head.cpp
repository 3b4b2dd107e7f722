#include "core/oracle/feature_head.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

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

FeatureHead::FeatureHead(const at::Tensor& rows, int64_t width, double ridge) : width_(std::min(width, rows.size(1))), mean_(rows.mean(0)) {
  const at::NoGradGuard no_grad;
  const at::Tensor centred = (rows - mean_).contiguous();
  const auto [values, vectors] = axes_of(centred);
  const at::Tensor shifted = values + ridge * values.mean() + 1e-12;
  whiten_ = (vectors / shifted.sqrt()).to(at::kFloat).contiguous();
  base_ = values / shifted;
  u_ = times(centred, whiten_);
  weight_ = at::eye(rows.size(1), at::kFloat).narrow(1, 0, width_).contiguous();
}

void FeatureHead::fit(const GraphStore& store) {
  const at::NoGradGuard no_grad;
  const int64_t n = u_.size(0), dims = u_.size(1);
  PAL_ASSERT(store.samples() == n, "a graph of the training set");
  // Blocks: Σ_{i≠j∈c} u_i u_jᵀ = s sᵀ − Σ_i u_i u_iᵀ, each over |c| − 1.
  at::Tensor graph = at::zeros({dims, dims}, at::kDouble);
  double samples = 0;
  const at::Tensor u = u_.to(at::kDouble);
  if (store.deduction() == Deduction::on) {
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
    samples = static_cast<double>(members.size());
    if (!members.empty()) {
      const at::Tensor rows = u.index_select(0, at::tensor(members, at::kLong));
      at::Tensor sums = at::zeros({static_cast<int64_t>(number.size()), dims}, at::kDouble);
      sums.index_add_(0, at::tensor(component, at::kLong), rows);
      const at::Tensor by = at::tensor(rest, at::kDouble).unsqueeze(1), each = at::tensor(weight, at::kDouble).unsqueeze(1);
      graph = (sums * by).t().mm(sums) - (rows * each).t().mm(rows);
    }
  } else {
    std::vector<int64_t> a, b;
    for (int64_t k = 0; k < store.answers(); ++k) {
      const Link link = store.answer(k);
      if (link.relation != Relation::same) continue;
      a.push_back(link.i);
      b.push_back(link.j);
    }
    samples = 2 * static_cast<double>(a.size());
    if (!a.empty()) {
      const at::Tensor left = u.index_select(0, at::tensor(a, at::kLong)), right = u.index_select(0, at::tensor(b, at::kLong));
      const at::Tensor half = left.t().mm(right);
      graph = half + half.t();
    }
  }
  const double alpha = samples / (samples + 4.0 * static_cast<double>(dims));
  const at::Tensor total = at::diag((1 - alpha) * base_) + (samples > 0 ? alpha / samples : 0.0) * graph;
  const auto [values, vectors] = at::linalg_eigh(total);
  weight_ = vectors.flip(1).narrow(1, 0, width_).to(at::kFloat).contiguous();
}

at::Tensor FeatureHead::operator()(const at::Tensor& rows) const {
  const at::NoGradGuard no_grad;
  return times(times((rows - mean_).contiguous(), whiten_), weight_);
}

}  // namespace pal
