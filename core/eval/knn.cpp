#include "core/eval/knn.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace pal {

Accuracy knn(const at::Tensor& train, const std::vector<int64_t>& train_labels, const at::Tensor& test,
             const std::vector<int64_t>& test_labels, int64_t classes, const KnnOptions& options) {
  const at::NoGradGuard no_grad;
  const Labelled a = known_rows(train, train_labels, classes, "training");
  const Labelled b = known_rows(test, test_labels, classes, "test");
  const auto normalised = [](const at::Tensor& x) { return x / x.norm(2, 1, /*keepdim=*/true).clamp_min(1e-12); };
  const at::Tensor support = normalised(a.features).t();
  const at::Tensor queries = normalised(b.features);
  const int64_t k = std::min(options.k, a.labels.size(0));

  // In pieces, so that memory stays near 64 MB whatever the sizes.
  const int64_t piece = std::max<int64_t>(1, (int64_t{16} << 20) / a.labels.size(0));
  int64_t right = 0;
  for (int64_t at = 0; at < queries.size(0); at += piece) {
    const int64_t n = std::min(piece, queries.size(0) - at);
    const auto [similarity, index] = queries.narrow(0, at, n).mm(support).topk(k, 1);
    // Votes relative to the nearest one, so that a small τ cannot overflow.
    const at::Tensor weight = ((similarity - similarity.select(1, 0).unsqueeze(1)) / options.temperature).exp();
    at::Tensor votes = at::zeros({n, classes}, weight.options());
    votes.scatter_add_(1, a.labels.index_select(0, index.flatten()).view({n, k}), weight);
    right += votes.argmax(1).eq(b.labels.narrow(0, at, n)).sum().item<int64_t>();
  }
  return {static_cast<double>(right) / static_cast<double>(queries.size(0)), a.labels.size(0), b.labels.size(0)};
}

}  // namespace pal
