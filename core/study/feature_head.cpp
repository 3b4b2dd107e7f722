#include "core/study/feature_head.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "core/graph/similarity_groups.h"
#include "core/oracle/samplers/products.h"
#include "kernels/base/error.h"

namespace pal::study {
namespace {

// Σ of centered rows in double, eigenvalues descending; the sign of an axis by its largest element.
std::pair<at::Tensor, at::Tensor> axes_of(const at::Tensor& centered) {
  const int64_t dims = centered.size(1);
  std::vector<double> sums = oracle::scatter(centered);
  const at::Tensor sigma =
      at::from_blob(sums.data(), {dims, dims}, at::kDouble) / static_cast<double>(centered.size(0));
  auto [values, vectors] = at::linalg_eigh(sigma);
  vectors = vectors.flip(1);
  const at::Tensor largest = vectors.gather(0, vectors.abs().argmax(0, /*keepdim=*/true));
  return {values.flip(0).clamp_min(0), vectors * largest.sign()};
}

// Samples assumed to be the same, in blocks of two or more.
struct Blocks {
  std::vector<int64_t> members, number;  // a sample, and its block
  int64_t count = 0;
};

// The groups assumed to be the same, and without deduction every answered pair.
Blocks blocks_of(const graph::GraphStore& store) {
  std::vector<std::pair<int64_t, int64_t>> grouped;  // group, sample
  for (int64_t i = 0; i < store.samples(); ++i)
    graph::for_each_similarity_group(store, i, [&](int64_t group) { grouped.emplace_back(group, i); });
  std::sort(grouped.begin(), grouped.end());
  Blocks out;
  const auto add = [&](int64_t sample) {
    out.members.push_back(sample);
    out.number.push_back(out.count);
  };
  for (size_t first = 0, last = 0; first < grouped.size(); first = last) {
    while (last < grouped.size() && grouped[last].first == grouped[first].first) ++last;
    if (last - first < 2) continue;
    for (size_t k = first; k < last; ++k) add(grouped[k].second);
    ++out.count;
  }
  for (int64_t i = 0; i < store.samples() && store.deduction() == graph::Deduction::off; ++i) {
    store.for_each_answer(i, [&](int64_t other, graph::Relation relation) {
      if (relation != graph::Relation::same || other < i) return;
      add(i);
      add(other);
      ++out.count;
    });
  }
  return out;
}

}  // namespace

Components principal_components(const at::Tensor& rows, int64_t width) {
  const at::NoGradGuard no_grad;
  const at::Tensor mean = rows.mean(0);
  const at::Tensor axes = axes_of((rows - mean).contiguous()).second;
  return {mean, axes.narrow(1, 0, std::min(width, rows.size(1))).to(at::kFloat).contiguous()};
}

at::Tensor Components::operator()(const at::Tensor& rows) const {
  return oracle::times((rows - mean).contiguous(), axes);
}

std::vector<HeadOptions> head_candidates() {
  std::vector<HeadOptions> all;
  for (double ridge : {0.1, 0.01, 1.0}) {
    for (double prior : {4.0, 32.0, 256.0, 4096.0}) all.push_back({ridge, prior});
  }
  return all;
}

FeatureHead::FeatureHead(const at::Tensor& rows, int64_t width)
    : width_(std::min(width, rows.size(1))), mean_(rows.mean(0)) {
  const at::NoGradGuard no_grad;
  const at::Tensor centered = (rows - mean_).contiguous();
  std::tie(values_, axes_) = axes_of(centered);
  x_ = oracle::times(centered, axes_.to(at::kFloat).contiguous());
  graph_ = at::zeros_like(axes_);
  fit({});
}

void FeatureHead::see(const graph::GraphStore& store) {
  const at::NoGradGuard no_grad;
  PAL_ASSERT(store.samples() == x_.size(0), "a graph of the training set");
  const int64_t dims = x_.size(1);
  graph_ = at::zeros({dims, dims}, at::kDouble);
  const Blocks blocks = blocks_of(store);
  samples_ = static_cast<double>(blocks.members.size());
  if (blocks.members.empty()) return;
  // Σ_{i≠j∈c} x_i x_jᵀ = s sᵀ − Σ_i x_i x_iᵀ, each over |c| − 1.
  const at::Tensor rows = x_.index_select(0, at::tensor(blocks.members, at::kLong)).to(at::kDouble),
                   number = at::tensor(blocks.number, at::kLong);
  at::Tensor sums = at::zeros({blocks.count, dims}, at::kDouble), sizes = at::zeros({blocks.count}, at::kDouble);
  sums.index_add_(0, number, rows);
  sizes.index_add_(0, number, at::ones_like(number, at::kDouble));
  const at::Tensor by = (sizes - 1).reciprocal().unsqueeze(1);
  graph_ = (sums * by).t().mm(sums) - (rows * by.index_select(0, number)).t().mm(rows);
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
  return oracle::times((rows - mean_).contiguous(), weight_);
}

HeadOptions choose_head(FeatureHead& head, const HeadSplit& split, const eval::ProbeOptions& probe) {
  HeadOptions best;
  double most = -1;
  for (const HeadOptions& options : head_candidates()) {
    head.fit(options);
    const double top1 = eval::linear_probe(head(split.train), split.train_labels, head(split.validation),
                                           split.validation_labels, split.classes, probe)
                            .top1;
    if (top1 > most) best = options, most = top1;
  }
  head.fit(best);
  return best;
}

}  // namespace pal::study
