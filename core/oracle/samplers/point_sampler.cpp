#include "core/oracle/samplers/point_sampler.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/vec.h"

namespace pal::oracle {
namespace {

class PointSampler final : public QuerySampler {
 public:
  PointSampler(std::string name, const PointOptions& options, PointOrder order)
      : name_(std::move(name)), options_(options), order_(std::move(order)) {
    PAL_CHECK(options.members >= 1, "oracle.members", options.members, "give at least 1");
  }
  std::string name() const override { return name_; }
  PoolNeeds needs() const override { return PoolNeeds::embeddings; }
  RefusedOrder refused_order() const override { return RefusedOrder::first; }

  std::vector<Query> choose(const graph::GraphStore& store, const Pool& pool, const Round& round) const override {
    if (pool.samples.empty() || round.questions <= 0) return {};
    PAL_ASSERT(pool.embeddings.defined(), "a sampler gets what it needs");
    Candidates board(store, pool, round, options_.templates);
    const ClassModel model(board.pool(), board.row_class(), static_cast<int64_t>(board.classes().size()),
                           options_.model);
    const std::vector<int64_t> points = refused_first(board, order_(board, model, round.questions));
    return ask_points(board, points, beliefs(board, model, points), options_.members, round.questions);
  }

 private:
  const std::string name_;
  const PointOptions options_;
  const PointOrder order_;
};

class PairSampler final : public QuerySampler {
 public:
  PairSampler(std::string name, PoolNeeds needs, PairOrder order)
      : name_(std::move(name)), needs_(needs), order_(std::move(order)) {}
  std::string name() const override { return name_; }
  PoolNeeds needs() const override { return needs_; }

  std::vector<Query> choose(const graph::GraphStore& store, const Pool& pool, const Round& round) const override {
    if (pool.samples.empty() || round.questions <= 0) return {};
    Candidates board(store, pool, round, Templates::none);
    std::vector<Query> queries;
    for (const PointPair& pair : order_(board, round.questions)) {
      if (static_cast<int64_t>(queries.size()) == round.questions) break;
      const Point &a = board.points()[pair.a], &b = board.points()[pair.b];
      if (a.unit == b.unit || !board.free(pair.a) || !board.free(pair.b) ||
          store.relation(a.sample, b.sample) != graph::Relation::unknown)
        continue;
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

std::unique_ptr<QuerySampler> make_point_sampler(const std::string& name, const PointOptions& options,
                                                 PointOrder order) {
  return std::make_unique<PointSampler>(name, options, std::move(order));
}

std::unique_ptr<QuerySampler> make_pair_sampler(const std::string& name, PoolNeeds needs, PairOrder order) {
  return std::make_unique<PairSampler>(name, needs, std::move(order));
}

std::vector<Query> ask_points(Candidates& board, const std::vector<int64_t>& points, const std::vector<Belief>& beliefs,
                              int64_t members, int64_t count) {
  std::vector<Query> queries;
  std::map<int64_t, size_t> grid;  // class → its last query
  int64_t asked = 0;
  for (size_t k = 0; k < points.size() && asked < count; ++k) {
    const int64_t point = points[k];
    int64_t c = beliefs[k].first;
    if (c < 0) {  // no class that is still open has an embedded member: the least known one
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

std::vector<int64_t> refused_first(const Candidates& board, const std::vector<int64_t>& order) {
  std::vector<int64_t> points;
  for (int64_t p = 0; p < board.count(); ++p) {
    if (board.free(p) && is_refused(board.store(), board.points()[p].sample)) points.push_back(p);
  }
  const std::unordered_set<int64_t> begun(points.begin(), points.end());
  std::sort(points.begin(), points.end(), [&](int64_t a, int64_t b) {
    return std::pair(board.points()[a].draw, a) < std::pair(board.points()[b].draw, b);
  });
  for (int64_t p : order) {
    if (!begun.count(p)) points.push_back(p);
  }
  return points;
}

std::vector<int64_t> free_points(const Candidates& board, int64_t most) {
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
  std::vector<std::pair<double, int64_t>> keyed;  // −score
  keyed.reserve(points.size());
  for (size_t k = 0; k < points.size(); ++k) keyed.emplace_back(-scores[k], points[k]);
  n = std::min(n, static_cast<int64_t>(keyed.size()));
  std::partial_sort(keyed.begin(), keyed.begin() + n, keyed.end());
  std::vector<int64_t> out;
  for (int64_t k = 0; k < n; ++k) out.push_back(keyed[k].second);
  return out;
}

namespace {

std::vector<int64_t> first_numbers(size_t n) {
  std::vector<int64_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

}  // namespace

std::vector<int64_t> best_and_diverse(const Candidates& board, const std::vector<int64_t>& points,
                                      const std::vector<double>& scores, int64_t count) {
  const std::vector<int64_t> best = best_points(points, scores, 4 * count);
  std::vector<int64_t> out;
  const std::unique_ptr<comm::Comm> alone = comm::make_local_comm();  // these few rows are on every rank
  for (int64_t k : farthest_first(board.point_rows(best), first_numbers(best.size()), {}, count, *alone))
    out.push_back(best[k]);
  return out;
}

namespace {

// Of all ranks: the one whose row is least covered, ties by the lower number; and that row.
struct Farthest {
  double covered = std::numeric_limits<double>::infinity();
  int64_t number = -1;
  std::vector<float> row;
};
Farthest farthest_of_all(const Farthest& own, comm::Comm& comm) {
  if (comm.size() == 1) return own;
  const auto dims = static_cast<int64_t>(own.row.size());
  at::Tensor sent = at::empty({1, dims + 2}, at::kDouble);
  sent.data_ptr<double>()[0] = own.covered;
  sent.data_ptr<double>()[1] = static_cast<double>(own.number);
  std::copy(own.row.begin(), own.row.end(), sent.data_ptr<double>() + 2);
  const at::Tensor all = comm.all_gather(sent);
  Farthest best;
  for (int64_t r = 0; r < all.size(0); ++r) {
    const double* t = all.const_data_ptr<double>() + r * (dims + 2);
    const auto number = static_cast<int64_t>(t[1]);
    if (number < 0 || (best.number >= 0 && std::pair(best.covered, best.number) < std::pair(t[0], number))) continue;
    best = {t[0], number, {t + 2, t + 2 + dims}};
  }
  return best;
}

}  // namespace

std::vector<int64_t> farthest_first(const at::Tensor& rows, const std::vector<int64_t>& numbers,
                                    std::vector<float> covered, int64_t count, comm::Comm& comm) {
  constexpr float kTaken = std::numeric_limits<float>::infinity();
  const int64_t n = rows.size(0), dims = rows.size(1);
  const float* x = rows.const_data_ptr<float>();
  const auto& ops = kernels::vec_ops<float>(kernels::best_isa());
  if (covered.empty()) covered.assign(static_cast<size_t>(n), -2.0f);
  std::vector<int64_t> out;
  while (static_cast<int64_t>(out.size()) < count) {
    Farthest own{.row = std::vector<float>(static_cast<size_t>(dims), 0)};
    const int64_t least = n == 0 ? -1 : std::min_element(covered.begin(), covered.end()) - covered.begin();
    if (least >= 0 && covered[least] != kTaken)
      own = {covered[least], numbers[least], {x + least * dims, x + (least + 1) * dims}};
    const Farthest next = farthest_of_all(own, comm);
    if (next.number < 0) break;  // all are taken
    out.push_back(next.number);
    at::parallel_for(0, n, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (covered[i] == kTaken) continue;
        covered[i] = numbers[i] == next.number
                         ? kTaken
                         : std::max(covered[i], static_cast<float>(ops.dot(x + i * dims, next.row.data(), dims)));
      }
    });
  }
  return out;
}

}  // namespace pal::oracle
