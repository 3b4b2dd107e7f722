#include "core/oracle/point_sampler.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/vec.h"

namespace pal {
namespace {

class PointSampler final : public QuerySampler {
 public:
  PointSampler(std::string name, const PointOptions& options, PointOrder order) : name_(std::move(name)), options_(options), order_(std::move(order)) {
    PAL_CHECK(options.members >= 1, "oracle.members", options.members, "give at least 1");
  }
  std::string name() const override { return name_; }
  PoolNeeds needs() const override { return PoolNeeds::embeddings; }
  Begun begun() const override { return Begun::first; }

  std::vector<Query> choose(const GraphStore& store, const Pool& pool, const Round& round) const override {
    if (pool.samples.empty() || round.questions <= 0) return {};
    PAL_ASSERT(pool.embeddings.defined(), "a sampler gets what it needs");
    Board board(store, pool, round, options_.templates);
    const ClassModel model(board.rows(), board.row_class(), static_cast<int64_t>(board.classes().size()), options_.model);
    const std::vector<int64_t> points = begun_first(board, order_(board, model, round.questions));
    return ask_points(board, points, beliefs(board, model, points), options_.members, round.questions);
  }

 private:
  const std::string name_;
  const PointOptions options_;
  const PointOrder order_;
};

class PairSampler final : public QuerySampler {
 public:
  PairSampler(std::string name, PoolNeeds needs, PairOrder order) : name_(std::move(name)), needs_(needs), order_(std::move(order)) {}
  std::string name() const override { return name_; }
  PoolNeeds needs() const override { return needs_; }

  std::vector<Query> choose(const GraphStore& store, const Pool& pool, const Round& round) const override {
    if (pool.samples.empty() || round.questions <= 0) return {};
    Board board(store, pool, round, Templates::none);
    std::vector<Query> queries;
    for (const PointPair& pair : order_(board, round.questions)) {
      if (static_cast<int64_t>(queries.size()) == round.questions) break;
      const Point &a = board.points()[pair.a], &b = board.points()[pair.b];
      if (a.unit == b.unit || !board.free(pair.a) || !board.free(pair.b) || store.relation(a.sample, b.sample) != Relation::unknown) continue;
      board.take(pair.a);
      board.take(pair.b);
      queries.push_back({.kind = QueryKind::pair, .template_sample = a.sample, .members = {b.sample}});
    }
    return queries;
  }

 private:
  const std::string name_;
  const PoolNeeds needs_;
  const PairOrder order_;
};

}  // namespace

std::unique_ptr<QuerySampler> make_point_sampler(const std::string& name, const PointOptions& options, PointOrder order) {
  return std::make_unique<PointSampler>(name, options, std::move(order));
}

std::unique_ptr<QuerySampler> make_pair_sampler(const std::string& name, PoolNeeds needs, PairOrder order) {
  return std::make_unique<PairSampler>(name, needs, std::move(order));
}

std::vector<Query> ask_points(Board& board, const std::vector<int64_t>& points, const std::vector<Belief>& beliefs, int64_t members,
                              int64_t count) {
  std::vector<Query> queries;
  std::map<int64_t, size_t> grid;   // class → its last query
  int64_t asked = 0;
  for (size_t k = 0; k < points.size() && asked < count; ++k) {
    const int64_t point = points[k];
    int64_t c = beliefs[k].first;
    if (c < 0) {   // no class that is still open has an embedded member: the least known one
      for (int64_t other = 0; other < static_cast<int64_t>(board.classes().size()); ++other) {
        if (board.open(point, other) && (c < 0 || board.classes()[other].known < board.classes()[c].known)) c = other;
      }
    }
    if (c < 0 || !board.open(point, c)) continue;
    board.take(point);
    ++asked;
    const auto at = grid.find(c);
    if (at == grid.end() || static_cast<int64_t>(queries[at->second].members.size()) == members) {
      grid[c] = queries.size();
      queries.push_back({.kind = QueryKind::captcha, .template_sample = board.classes()[c].sample});
    }
    queries[grid[c]].members.push_back(board.points()[point].sample);
  }
  return queries;
}

std::vector<int64_t> begun_first(const Board& board, const std::vector<int64_t>& order) {
  std::vector<int64_t> points;
  for (int64_t p = 0; p < board.count(); ++p) {
    if (board.free(p) && is_begun(board.store(), board.points()[p].sample)) points.push_back(p);
  }
  const std::unordered_set<int64_t> begun(points.begin(), points.end());
  std::sort(points.begin(), points.end(), [&](int64_t a, int64_t b) { return std::pair(board.points()[a].draw, a) < std::pair(board.points()[b].draw, b); });
  for (int64_t p : order) {
    if (!begun.count(p)) points.push_back(p);
  }
  return points;
}

std::vector<int64_t> free_points(const Board& board, int64_t most) {
  std::vector<int64_t> points;
  for (int64_t p = 0; p < board.count(); ++p) {
    if (board.free(p)) points.push_back(p);
  }
  if (static_cast<int64_t>(points.size()) <= most) return points;
  std::nth_element(points.begin(), points.begin() + most, points.end(), [&](int64_t a, int64_t b) {
    return std::pair(board.points()[a].draw, a) < std::pair(board.points()[b].draw, b);
  });
  points.resize(static_cast<size_t>(most));
  std::sort(points.begin(), points.end());
  return points;
}

std::vector<int64_t> best_points(const std::vector<int64_t>& points, const std::vector<double>& scores, int64_t n) {
  std::vector<std::pair<double, int64_t>> keyed;   // −score
  keyed.reserve(points.size());
  for (size_t k = 0; k < points.size(); ++k) keyed.emplace_back(-scores[k], points[k]);
  n = std::min(n, static_cast<int64_t>(keyed.size()));
  std::partial_sort(keyed.begin(), keyed.begin() + n, keyed.end());
  std::vector<int64_t> out;
  for (int64_t k = 0; k < n; ++k) out.push_back(keyed[k].second);
  return out;
}

std::vector<int64_t> best_and_diverse(const Board& board, const std::vector<int64_t>& points, const std::vector<double>& scores, int64_t count) {
  const std::vector<int64_t> best = best_points(points, scores, 4 * count);
  std::vector<int64_t> out;
  for (int64_t k : farthest_first(board.point_rows(best), {}, count)) out.push_back(best[k]);
  return out;
}

std::vector<int64_t> farthest_first(const at::Tensor& rows, std::vector<float> covered, int64_t count) {
  const int64_t n = rows.size(0), dims = rows.size(1);
  count = std::min(count, n);
  const float* x = rows.const_data_ptr<float>();
  const auto& ops = kernels::vec_ops<float>(kernels::best_isa());
  const bool fresh = covered.empty();
  if (fresh) covered.assign(static_cast<size_t>(n), -2.0f);
  std::vector<int64_t> out;
  int64_t next = 0;
  while (static_cast<int64_t>(out.size()) < count) {
    if (!fresh || !out.empty()) next = std::min_element(covered.begin(), covered.end()) - covered.begin();
    out.push_back(next);
    at::parallel_for(0, n, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (covered[i] == std::numeric_limits<float>::infinity()) continue;
        covered[i] = std::max(covered[i], static_cast<float>(ops.dot(x + i * dims, x + next * dims, dims)));
      }
    });
    covered[next] = std::numeric_limits<float>::infinity();   // taken
  }
  return out;
}

}  // namespace pal
