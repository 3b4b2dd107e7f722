#include "core/oracle/samplers/kmeans.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/oracle/samplers/exact_sums.h"
#include "core/oracle/samplers/point_sampler.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::oracle {
namespace {

using Drawn = std::pair<uint64_t, int64_t>;  // draw, id
constexpr int64_t kCandidates = 2;           // for each initial center

// The `count` smallest draws of all ranks, ascending; their rows are on the ranks that hold them.
std::vector<Drawn> smallest_draws(const std::vector<int64_t>& ids, int64_t count, const KmeansOptions& o,
                                  comm::Comm& comm) {
  std::vector<Drawn> own;
  own.reserve(ids.size());
  for (int64_t id : ids)
    own.emplace_back(
        Random(o.seed, Purpose::oracle, static_cast<uint64_t>(o.round), static_cast<uint64_t>(id), 1).next_u64(), id);
  const int64_t keep = std::min<int64_t>(count, static_cast<int64_t>(own.size()));
  std::partial_sort(own.begin(), own.begin() + keep, own.end());
  own.resize(static_cast<size_t>(keep));
  if (comm.size() == 1) return own;
  const at::Tensor counts = comm.all_gather(at::full({1}, keep, at::kLong));
  const std::vector<int64_t> each(counts.const_data_ptr<int64_t>(), counts.const_data_ptr<int64_t>() + counts.numel());
  at::Tensor words = at::zeros({keep, 2}, at::kLong);
  for (int64_t k = 0; k < keep; ++k) {
    words.data_ptr<int64_t>()[2 * k] = static_cast<int64_t>(own[k].first);
    words.data_ptr<int64_t>()[2 * k + 1] = own[k].second;
  }
  const at::Tensor all = comm.all_gather_v(words, each);
  std::vector<Drawn> merged;
  for (int64_t k = 0; k < all.size(0); ++k) {
    merged.emplace_back(static_cast<uint64_t>(all.const_data_ptr<int64_t>()[2 * k]),
                        all.const_data_ptr<int64_t>()[2 * k + 1]);
  }
  std::sort(merged.begin(), merged.end());
  merged.resize(std::min(merged.size(), static_cast<size_t>(count)));
  return merged;
}

// The row of this id, from the rank that has it.
at::Tensor row_of(const at::Tensor& rows, const std::vector<int64_t>& ids, int64_t id, comm::Comm& comm) {
  at::Tensor row = at::zeros({rows.size(1)}, at::kFloat);
  const auto at = std::find(ids.begin(), ids.end(), id);
  if (at != ids.end()) row.copy_(rows.select(0, at - ids.begin()));
  comm.all_reduce(row);
  return row;
}

// Ids of the `count` rows that are least similar to their center, worst first, ties by id.
std::vector<int64_t> worst_rows(const std::vector<float>& similarity, const std::vector<int64_t>& ids, int64_t count,
                                comm::Comm& comm) {
  using Fit = std::pair<float, int64_t>;
  std::vector<Fit> own;
  for (size_t i = 0; i < ids.size(); ++i) own.emplace_back(similarity[i], ids[i]);
  const int64_t keep = std::min<int64_t>(count, static_cast<int64_t>(own.size()));
  std::partial_sort(own.begin(), own.begin() + keep, own.end());
  at::Tensor fit = at::full({count}, std::numeric_limits<double>::infinity(), at::kDouble),
             id = at::full({count}, -1, at::kLong);
  for (int64_t k = 0; k < keep; ++k) {
    fit.data_ptr<double>()[k] = own[k].first;
    id.data_ptr<int64_t>()[k] = own[k].second;
  }
  fit = comm.all_gather(fit);
  id = comm.all_gather(id);
  std::vector<std::pair<double, int64_t>> all;
  for (int64_t k = 0; k < fit.numel(); ++k) {
    if (id.const_data_ptr<int64_t>()[k] >= 0)
      all.emplace_back(fit.const_data_ptr<double>()[k], id.const_data_ptr<int64_t>()[k]);
  }
  std::sort(all.begin(), all.end());
  std::vector<int64_t> out;
  for (size_t k = 0; k < all.size() && static_cast<int64_t>(k) < count; ++k) out.push_back(all[k].second);
  return out;
}

}  // namespace

Kmeans kmeans(const at::Tensor& rows, const std::vector<int64_t>& ids, const KmeansOptions& o, comm::Comm& comm) {
  const at::NoGradGuard no_grad;
  PAL_CHECK(o.clusters >= 1, "clusters of k-means", o.clusters, "give at least 1");
  PAL_ASSERT(rows.size(0) == static_cast<int64_t>(ids.size()), "an id for each row");
  // The rows that move the centers, and the first of them as centers.
  const int64_t most = o.per_cluster > 0 ? o.per_cluster * o.clusters : std::numeric_limits<int64_t>::max() / 2;
  at::Tensor total = at::full({1}, rows.size(0), at::kLong);
  comm.all_reduce(total);
  const bool sampled = total.item<int64_t>() > most;
  const std::vector<Drawn> drawn = smallest_draws(ids, std::max(sampled ? most : 0, kCandidates * o.clusters), o, comm);
  const int64_t clusters = std::min<int64_t>(o.clusters, static_cast<int64_t>(drawn.size()));
  Kmeans out;
  if (clusters == 0) return out;
  std::vector<std::pair<int64_t, int64_t>> place;  // id → row here
  for (size_t i = 0; i < ids.size(); ++i) place.emplace_back(ids[i], static_cast<int64_t>(i));
  std::sort(place.begin(), place.end());
  const auto row_here = [&](int64_t id) {
    const auto at = std::lower_bound(place.begin(), place.end(), std::pair<int64_t, int64_t>(id, 0));
    return at != place.end() && at->first == id ? at->second : -1;
  };
  std::vector<int64_t> moving, moving_ids;
  if (sampled) {
    for (int64_t k = 0; k < std::min<int64_t>(most, static_cast<int64_t>(drawn.size())); ++k) {
      if (const int64_t row = row_here(drawn[k].second); row >= 0) moving.push_back(row);
    }
    std::sort(moving.begin(), moving.end());
    for (int64_t row : moving) moving_ids.push_back(ids[row]);
  }
  const at::Tensor part = sampled ? rows.index_select(0, at::tensor(moving, at::kLong)) : rows;
  const std::vector<int64_t>& part_ids = sampled ? moving_ids : ids;
  const int64_t candidates = std::min<int64_t>(kCandidates * o.clusters, static_cast<int64_t>(drawn.size()));
  at::Tensor firsts = at::zeros({candidates, rows.size(1)}, at::kFloat);
  for (int64_t c = 0; c < candidates; ++c) {
    if (const int64_t row = row_here(drawn[c].second); row >= 0) firsts.select(0, c).copy_(rows.select(0, row));
  }
  comm.all_reduce(firsts);
  std::vector<int64_t> numbers(static_cast<size_t>(candidates));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  const auto alone = comm::make_local_comm();  // every rank has them all
  out.centers = firsts.index_select(0, at::tensor(farthest_first(firsts, numbers, {}, clusters, *alone), at::kLong));

  Assignment now(part);
  for (out.iterations = 0; out.iterations < o.iterations; ++out.iterations) {
    at::Tensor moved = at::full({1}, static_cast<int64_t>(now.update(out.centers)), at::kLong);
    comm.all_reduce(moved);
    if (moved.item<int64_t>() == 0) break;
    const ExactSums sums(part, now.center(), clusters, comm);
    std::vector<int64_t> empty;
    for (int64_t c = 0; c < clusters; ++c) {
      sums.direction(c, out.centers.data_ptr<float>() + c * out.centers.size(1));  // a center whose rows cancel stays
      if (sums.rows(c) == 0) empty.push_back(c);
    }
    if (empty.empty()) continue;
    const std::vector<int64_t> worst = worst_rows(now.similarity(), part_ids, static_cast<int64_t>(empty.size()), comm);
    for (size_t k = 0; k < worst.size(); ++k)
      out.centers.select(0, empty[k]).copy_(row_of(part, part_ids, worst[k], comm));
  }
  if (sampled) now = Assignment(rows);
  now.update(out.centers);
  out.assigned = now.center();
  out.similarity = now.similarity();
  return out;
}

}  // namespace pal::oracle
