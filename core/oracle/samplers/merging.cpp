// merging: the pair of components whose answer is expected to add most positive pairs, |a| · |b| · P(same). P comes
// from the similarity of the components' centers: a logistic curve between that of members to their own center and that
// of centers.
#include <ATen/Parallel.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/ops/similarity.h"
#include "core/oracle/samplers/exact_sums.h"
#include "core/oracle/samplers/samplers.h"

namespace pal::oracle {
namespace {

constexpr int64_t kMergeAsked = 8192, kMergeSupport = 32768, kMergeNeighbors = 16;  // drawn components

// The centers (mean of their rows in the pool) of some points' components, (points, D), unit rows. Collective.
at::Tensor component_centers(const Candidates& board, const std::vector<int64_t>& points,
                             const std::vector<int64_t>& rows_of) {
  const PoolRows& pool = board.pool();
  std::vector<int64_t> rows, several;           // most components have one row here: that is their center
  std::unordered_map<int64_t, int64_t> number;  // of the others, by component
  for (int64_t p : points) {
    rows.push_back(board.points()[p].row);
    if (rows_of[p] > 1) {
      number.emplace(board.points()[p].unit, static_cast<int64_t>(several.size()));
      several.push_back(static_cast<int64_t>(rows.size()) - 1);
    }
  }
  at::Tensor centers = pool.gather(rows);
  if (several.empty()) return centers;
  std::vector<int64_t> group;
  for (int64_t row : pool.rows_here()) {
    const auto at = number.find(board.unit(pool.samples()[row]));
    group.push_back(at == number.end() ? -1 : at->second);
  }
  const ExactSums sums(pool.here(), group, static_cast<int64_t>(several.size()), pool.comm());
  for (size_t k = 0; k < several.size(); ++k)
    sums.direction(static_cast<int64_t>(k), centers.data_ptr<float>() + several[k] * centers.size(1));
  return centers;
}

// P(same) by the similarity of centers: 1/2 midway between members and strangers (two components that differ).
struct SameCurve {
  double middle = 0.5, steepness = 8;
  double operator()(double similarity) const { return 1 / (1 + std::exp(-steepness * (similarity - middle))); }
};

// centers (points, D); strangers: points that follow each other, which are drawn.
SameCurve fit_curve(const Candidates& board, const std::vector<int64_t>& points, const at::Tensor& centers,
                    const std::vector<int64_t>& rows_of) {
  const int64_t dims = centers.size(1);
  const auto dot = [&](const float* a, const float* b) {
    double sum = 0;
    for (int64_t k = 0; k < dims; ++k) sum += static_cast<double>(a[k]) * b[k];
    return sum;
  };
  std::vector<int64_t> large;  // indices of `points`
  for (size_t k = 0; k < points.size(); ++k) {
    if (rows_of[points[k]] > 2) large.push_back(static_cast<int64_t>(k));
  }
  const auto count = static_cast<int64_t>(points.size());
  SameCurve curve;
  if (large.empty() || count < 2) return curve;
  std::vector<int64_t> members;
  for (int64_t k : large) members.push_back(points[k]);
  const at::Tensor rows = board.point_rows(members);
  const float* c = centers.const_data_ptr<float>();
  double own = 0, strange = 0;
  for (size_t k = 0; k < large.size(); ++k)
    own += dot(c + large[k] * dims, rows.const_data_ptr<float>() + static_cast<int64_t>(k) * dims);
  for (int64_t k = 1; k < count; ++k) strange += dot(c + k * dims, c + (k - 1) * dims);
  own /= static_cast<double>(large.size());
  strange /= static_cast<double>(count - 1);
  if (own > strange + 1e-3) curve = {(own + strange) / 2, 4 / (own - strange)};
  return curve;
}

}  // namespace

std::unique_ptr<QuerySampler> merging_sampler(const OracleSpec&, const std::vector<int64_t>&) {
  return make_pair_sampler("merging", PoolNeeds::embeddings, [](const Candidates& board, int64_t count) {
    std::vector<PointPair> pairs;
    const auto size = [&](int64_t p) { return board.unit_size(p); };
    std::vector<int64_t> rows_of(static_cast<size_t>(board.count()), 0),
        support;  // rows of each point's component in the pool
    std::unordered_map<int64_t, int64_t> point_of;
    for (int64_t p = 0; p < board.count(); ++p) point_of[board.points()[p].unit] = p;
    for (int64_t sample : board.pool().samples()) ++rows_of[point_of.at(board.unit(sample))];
    const std::vector<int64_t> asked =
        free_points(board, kMergeAsked);  // the smallest draws: among those of the support
    for (int64_t p : free_points(board, kMergeSupport)) {
      if (size(p) == 1) support.push_back(p);
    }
    for (int64_t p = 0; p < board.count(); ++p) {
      if (size(p) > 1) support.push_back(p);  // all of them
    }
    std::sort(support.begin(), support.end());
    if (asked.empty() || support.size() < 2) return pairs;
    const at::Tensor centers = component_centers(board, support, rows_of);
    const SameCurve same = fit_curve(board, support, centers, rows_of);
    // Each rank finds the neighbors of its share of the asked points.
    const auto queries = static_cast<int64_t>(asked.size());
    const int64_t k = std::min(kMergeNeighbors, static_cast<int64_t>(support.size()));
    const comm::Comm& comm = board.pool().comm();
    const int64_t begin = queries * comm.rank() / comm.size(), own = queries * (comm.rank() + 1) / comm.size() - begin;
    at::Tensor ids = at::zeros({queries, k}, at::kLong), scores = at::zeros({queries, k}, at::kDouble);
    const at::Tensor numbers = at::tensor(support, at::kLong), self = at::tensor(asked, at::kLong).unsqueeze(1);
    std::vector<int64_t> place;
    for (int64_t p : asked) place.push_back(std::lower_bound(support.begin(), support.end(), p) - support.begin());
    if (own > 0) {
      at::Tensor ids_here = ids.narrow(0, begin, own), scores_here = scores.narrow(0, begin, own);
      ops::nearest(ids_here, scores_here, centers.index_select(0, at::tensor(place, at::kLong).narrow(0, begin, own)),
                   {centers, numbers, {}}, self.narrow(0, begin, own), kernels::Metric::cosine, at::get_num_threads());
    }
    board.pool().complete(ids);
    board.pool().complete(scores);
    struct Offer {
      double gain;
      PointPair pair;
    };
    std::vector<Offer> offers;
    for (int64_t q = 0; q < queries; ++q) {
      for (int64_t j = 0; j < k; ++j) {
        const int64_t other = ids.const_data_ptr<int64_t>()[q * k + j];
        if (other < 0 || board.store().relation(board.points()[asked[q]].sample, board.points()[other].sample) !=
                             graph::Relation::unknown)
          continue;
        const double gain = static_cast<double>(size(asked[q])) * static_cast<double>(size(other)) *
                            same(scores.const_data_ptr<double>()[q * k + j]);
        offers.push_back({gain, {std::min(asked[q], other), std::max(asked[q], other)}});
      }
    }
    std::sort(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
      return a.gain != b.gain ? a.gain > b.gain : std::pair(a.pair.a, a.pair.b) < std::pair(b.pair.a, b.pair.b);
    });
    for (const Offer& o : offers) {
      pairs.push_back(o.pair);
      if (static_cast<int64_t>(pairs.size()) > 64 * count) break;  // components are taken once: the rest are others
    }
    return pairs;
  });
}

}  // namespace pal::oracle
