#include "core/eval/knn.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "core/ops/similarity.h"
#include "core/ops/tensors.h"

namespace pal {

Neighbours neighbours(const at::Tensor& queries, const at::Tensor& support, int64_t k) {
  const at::NoGradGuard no_grad;
  if (k <= kernels::kMaxNearest) {
    const int64_t n = queries.size(0);
    Neighbours found{ops::empty_doubles({n, k}, queries), at::empty({n, k}, queries.options().dtype(at::kLong))};
    ops::nearest(found.index, found.similarity, queries.contiguous(), {support.contiguous(), {}, {}}, {}, kernels::Metric::cosine,
                 at::get_num_threads());
    return found;
  }
  const auto normalised = [](const at::Tensor& x) { return x / x.norm(2, 1, /*keepdim=*/true).clamp_min(1e-12); };
  const at::Tensor all = normalised(queries).mm(normalised(support).t());
  const auto [similarity, index] = all.sort(/*stable=*/true, /*dim=*/1, /*descending=*/true);
  return {similarity.narrow(1, 0, k).to(at::kDouble), index.narrow(1, 0, k).contiguous()};
}

Accuracy knn(const at::Tensor& train, const std::vector<int64_t>& train_labels, const at::Tensor& test,
             const std::vector<int64_t>& test_labels, int64_t classes, const KnnOptions& options) {
  const at::NoGradGuard no_grad;
  const Labelled a = known_rows(train, train_labels, classes, "training");
  const Labelled b = known_rows(test, test_labels, classes, "test");
  const int64_t k = std::min(options.k, a.labels.size(0)), total = b.labels.size(0);

  // In pieces, so that memory stays near 128 MB whatever the sizes.
  const int64_t piece = k <= kernels::kMaxNearest ? 2048 : std::max<int64_t>(1, (int64_t{4} << 20) / a.labels.size(0));
  int64_t right = 0;
  for (int64_t at = 0; at < total; at += piece) {
    const int64_t n = std::min(piece, total - at);
    const auto [similarity, index] = neighbours(b.features.narrow(0, at, n), a.features, k);
    const at::Tensor missing = index.lt(0);
    // Votes relative to the nearest one, so that a small τ cannot overflow.
    const at::Tensor weight = ((similarity - similarity.select(1, 0).unsqueeze(1)) / options.temperature).exp().masked_fill(missing, 0.0);
    at::Tensor votes = at::zeros({n, classes}, weight.options());
    votes.scatter_add_(1, a.labels.index_select(0, index.clamp_min(0).flatten()).view({n, k}), weight);
    const at::Tensor hit = votes.argmax(1).eq(b.labels.narrow(0, at, n));
    right += hit.logical_and(missing.select(1, 0).logical_not()).sum().item<int64_t>();
  }
  return {static_cast<double>(right) / static_cast<double>(total), a.labels.size(0), total};
}

}  // namespace pal
