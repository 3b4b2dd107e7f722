// merging: the pairs of components that most likely belong together, the large ones first.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/ops/similarity.h"
#include "core/oracle/samplers.h"

namespace pal {
namespace {

constexpr int64_t kMergeAsked = 8192, kMergeSupport = 32768, kMergeNeighbours = 16;   // components looked at, drawn

// The centre (mean of its rows in the pool) of each point's component, (points, D), unit rows.
at::Tensor component_centres(const Board& board, std::vector<int64_t>& rows_of) {
  std::unordered_map<int64_t, int64_t> point_of;
  for (int64_t p = 0; p < board.count(); ++p) point_of[board.points()[p].unit] = p;
  const int64_t dims = board.rows().size(1);
  at::Tensor centres = at::zeros({board.count(), dims}, at::kDouble);
  rows_of.assign(static_cast<size_t>(board.count()), 0);
  for (size_t row = 0; row < board.samples().size(); ++row) {
    const int64_t p = point_of.at(board.unit(board.samples()[row]));
    ++rows_of[p];
    for (int64_t k = 0; k < dims; ++k) centres.data_ptr<double>()[p * dims + k] += board.rows().const_data_ptr<float>()[static_cast<int64_t>(row) * dims + k];
  }
  return (centres / centres.norm(2, 1, /*keepdim=*/true).clamp_min(1e-20)).to(at::kFloat);
}

// P(same) by the similarity of centres: a half midway between members and strangers.
struct SameCurve {
  double middle = 0.5, steepness = 8;
  double operator()(double similarity) const { return 1 / (1 + std::exp(-steepness * (similarity - middle))); }
};

SameCurve fit_curve(const Board& board, const at::Tensor& centres, const std::vector<int64_t>& rows_of) {
  const int64_t dims = centres.size(1);
  const auto dot = [&](const float* a, const float* b) {
    double sum = 0;
    for (int64_t k = 0; k < dims; ++k) sum += static_cast<double>(a[k]) * b[k];
    return sum;
  };
  const float* c = centres.const_data_ptr<float>();
  double own = 0, strange = 0;
  int64_t owns = 0, stranges = 0;
  for (int64_t p = 0; p < board.count(); ++p) {
    if (rows_of[p] > 2) own += dot(c + p * dims, board.rows().const_data_ptr<float>() + board.points()[p].row * dims), ++owns;
    if (p > 0) strange += dot(c + p * dims, c + (p - 1) * dims), ++stranges;
  }
  SameCurve curve;
  if (owns == 0 || stranges == 0) return curve;
  own /= static_cast<double>(owns);
  strange /= static_cast<double>(stranges);
  if (own > strange + 1e-3) curve = {(own + strange) / 2, 4 / (own - strange)};
  return curve;
}

}  // namespace

std::unique_ptr<QuerySampler> make_merging() {
  return make_pair_sampler("merging", PoolNeeds::embeddings, [](const Board& board, int64_t count) {
    std::vector<PointPair> pairs;
    std::vector<int64_t> rows_of, asked, support;
    const at::Tensor centres = component_centres(board, rows_of);
    const SameCurve same = fit_curve(board, centres, rows_of);
    const auto size = [&](int64_t p) { return board.unit_size(p); };
    for (int64_t p : free_points(board, kMergeAsked)) asked.push_back(p);
    for (int64_t p : free_points(board, kMergeSupport)) {
      if (size(p) == 1) support.push_back(p);
    }
    for (int64_t p = 0; p < board.count(); ++p) {
      if (size(p) > 1) support.push_back(p);   // all of them
    }
    std::sort(support.begin(), support.end());
    if (asked.empty() || support.size() < 2) return pairs;
    const auto queries = static_cast<int64_t>(asked.size());
    const int64_t k = std::min(kMergeNeighbours, static_cast<int64_t>(support.size()));
    at::Tensor ids = at::empty({queries, k}, at::kLong), scores = at::empty({queries, k}, at::kDouble);
    const at::Tensor numbers = at::tensor(support, at::kLong), self = at::tensor(asked, at::kLong).unsqueeze(1);
    ops::nearest(ids, scores, centres.index_select(0, at::tensor(asked, at::kLong)), {centres.index_select(0, numbers), numbers, {}}, self,
                 kernels::Metric::cosine, at::get_num_threads());
    struct Offer {
      double gain;
      PointPair pair;
    };
    std::vector<Offer> offers;
    for (int64_t q = 0; q < queries; ++q) {
      for (int64_t j = 0; j < k; ++j) {
        const int64_t other = ids.const_data_ptr<int64_t>()[q * k + j];
        if (other < 0 || board.store().relation(board.points()[asked[q]].sample, board.points()[other].sample) != Relation::unknown) continue;
        const double gain = static_cast<double>(size(asked[q])) * static_cast<double>(size(other)) * same(scores.const_data_ptr<double>()[q * k + j]);
        offers.push_back({gain, {std::min(asked[q], other), std::max(asked[q], other)}});
      }
    }
    std::sort(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
      return a.gain != b.gain ? a.gain > b.gain : std::pair(a.pair.a, a.pair.b) < std::pair(b.pair.a, b.pair.b);
    });
    for (const Offer& o : offers) {
      pairs.push_back(o.pair);
      if (static_cast<int64_t>(pairs.size()) > 64 * count) break;   // components are taken once: the rest are others
    }
    return pairs;
  });
}

}  // namespace pal
