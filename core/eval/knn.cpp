#include "core/eval/knn.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>

#include "core/comm/rank_slices.h"
#include "core/ops/similarity.h"
#include "core/ops/tensors.h"

namespace pal::eval {

Neighbors neighbors(const at::Tensor& queries, const at::Tensor& support, int64_t k) {
  const at::NoGradGuard no_grad;
  if (k <= kernels::kMaxNearest) {
    const int64_t n = queries.size(0);
    Neighbors found{ops::empty_doubles({n, k}, queries), at::empty({n, k}, queries.options().dtype(at::kLong))};
    ops::nearest(found.index, found.similarity, queries.contiguous(), {support.contiguous(), {}, {}}, {},
                 kernels::Metric::cosine, at::get_num_threads());
    return found;
  }
  const auto normalized = [](const at::Tensor& x) { return x / x.norm(2, 1, /*keepdim=*/true).clamp_min(1e-12); };
  const at::Tensor all = normalized(queries).mm(normalized(support).t());
  const auto [similarity, index] = all.sort(/*stable=*/true, /*dim=*/1, /*descending=*/true);
  return {similarity.narrow(1, 0, k).to(at::kDouble), index.narrow(1, 0, k).contiguous()};
}

namespace {

// (n, C) votes of the first k neighbors, relative to the nearest one so that a small τ cannot overflow. A query without
// neighbors gets votes that are not finite.
at::Tensor votes_of(const Neighbors& near, const at::Tensor& labels, int64_t classes, const KnnOptions& options) {
  const int64_t n = near.index.size(0), k = std::min(options.k, near.index.size(1));
  const at::Tensor similarity = near.similarity.narrow(1, 0, k), index = near.index.narrow(1, 0, k);
  const at::Tensor missing = index.lt(0);
  const at::Tensor weight =
      ((similarity - similarity.select(1, 0).unsqueeze(1)) / options.temperature).exp().masked_fill(missing, 0.0);
  at::Tensor votes = at::zeros({n, classes}, weight.options());
  votes.scatter_add_(1, labels.index_select(0, index.clamp_min(0).flatten()).view({n, k}), weight);
  return votes.masked_fill(missing.select(1, 0).unsqueeze(1), std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

std::vector<Accuracy> knn_sweep(const at::Tensor& train, const std::vector<int64_t>& train_labels,
                                const at::Tensor& test, const std::vector<int64_t>& test_labels, int64_t classes,
                                const std::vector<KnnOptions>& options, comm::Comm& comm, const RowProgress& progress) {
  const at::NoGradGuard no_grad;
  const Labeled a = known_rows(train, train_labels, classes, "training");
  const Labeled b = known_rows(test, test_labels, classes, "test");
  int64_t largest = 1;
  for (const KnnOptions& o : options) largest = std::max(largest, o.k);
  const int64_t k = std::min(largest, a.labels.size(0));

  const std::vector<int64_t> begin = comm::rank_slices(b.labels.size(0), comm.size());
  std::vector<int64_t> counts;
  for (int r = 0; r < comm.size(); ++r) counts.push_back(begin[r + 1] - begin[r]);
  const int64_t first = begin[comm.rank()], last = begin[comm.rank() + 1];
  // In pieces, so that memory stays near 128 MB for all sizes.
  const int64_t piece = k <= kernels::kMaxNearest ? 2048 : std::max<int64_t>(1, (int64_t{4} << 20) / a.labels.size(0));
  std::vector<std::vector<at::Tensor>> predicted(options.size()), place(options.size());
  for (int64_t at = first; at < last; at += piece) {
    const int64_t n = std::min(piece, last - at);
    const Neighbors near = neighbors(b.features.narrow(0, at, n), a.features, k);
    for (size_t o = 0; o < options.size(); ++o) {
      const Predictions predictions =
          predictions_of(votes_of(near, a.labels, classes, options[o]), b.labels.narrow(0, at, n));
      predicted[o].push_back(predictions.predicted);
      place[o].push_back(predictions.place);
    }
    if (progress) progress(at + n - first);
  }
  std::vector<Accuracy> found;
  for (size_t o = 0; o < options.size(); ++o) {
    const at::Tensor none = at::empty({0}, at::kLong);
    predicted[o].push_back(none);  // a rank may have no test sample
    place[o].push_back(none);
    found.push_back(
        tally(gather({at::cat(predicted[o]), at::cat(place[o])}, counts, comm), b.labels, classes, a.labels.size(0)));
  }
  return found;
}

Accuracy knn(const at::Tensor& train, const std::vector<int64_t>& train_labels, const at::Tensor& test,
             const std::vector<int64_t>& test_labels, int64_t classes, const KnnOptions& options) {
  const auto alone = comm::make_local_comm();
  return knn_sweep(train, train_labels, test, test_labels, classes, {options}, *alone).front();
}

}  // namespace pal::eval
