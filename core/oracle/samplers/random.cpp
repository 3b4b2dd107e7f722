// random: the samplers that need only the numbers of the samples.
//   random      a point and one of its open classes, both drawn: the baseline of all other samplers
//   supervised  pairs of samples, both drawn: the passive oracle of the paper
//   ssl         no question: only the views of a sample are known to be the same
#include <algorithm>

#include "core/oracle/samplers/samplers.h"
#include "kernels/base/philox.h"

namespace pal::oracle {
namespace {

// The first `count` free points by their draws.
std::vector<int64_t> drawn_points(const Candidates& board, int64_t count) {
  std::vector<int64_t> points = free_points(board, count);
  std::sort(points.begin(), points.end(),
            [&](int64_t a, int64_t b) { return board.points()[a].draw < board.points()[b].draw; });
  return points;
}

class RandomSampler final : public QuerySampler {
 public:
  explicit RandomSampler(const PointOptions& options) : options_(options) {}
  std::string name() const override { return "random"; }
  PoolNeeds needs() const override { return PoolNeeds::samples; }

  std::vector<Query> choose(const graph::GraphStore& store, const Pool& pool, const Round& round) const override {
    if (pool.samples.empty() || round.questions <= 0) return {};
    Candidates board(store, pool, round, options_.templates);
    const std::vector<int64_t> points = drawn_points(board, board.count());
    std::vector<Belief> beliefs(points.size());
    for (size_t k = 0; k < points.size(); ++k) {
      std::vector<int64_t> open;
      for (size_t c = 0; c < board.classes().size(); ++c) {
        if (board.open(points[k], static_cast<int64_t>(c))) open.push_back(static_cast<int64_t>(c));
      }
      Random random(round.seed, Purpose::oracle, static_cast<uint64_t>(round.round),
                    static_cast<uint64_t>(board.points()[points[k]].sample), 2);
      if (!open.empty()) beliefs[k].first = open[random.below(open.size())];
      if (static_cast<int64_t>(k) > 4 * round.questions) break;  // points with nothing open are rare
    }
    return ask_points(board, points, beliefs, options_.members, round.questions);
  }

 private:
  const PointOptions options_;
};

class Silent final : public QuerySampler {
 public:
  std::string name() const override { return "ssl"; }
  PoolNeeds needs() const override { return PoolNeeds::samples; }
  std::vector<Query> choose(const graph::GraphStore&, const Pool&, const Round&) const override { return {}; }
};

}  // namespace

std::unique_ptr<QuerySampler> ssl_sampler(const OracleSpec&, const std::vector<int64_t>&) {
  return std::make_unique<Silent>();
}

std::unique_ptr<QuerySampler> random_sampler(const OracleSpec& settings, const std::vector<int64_t>&) {
  return std::make_unique<RandomSampler>(point_options(settings));
}

std::unique_ptr<QuerySampler> supervised_sampler(const OracleSpec&, const std::vector<int64_t>&) {
  return make_pair_sampler("supervised", PoolNeeds::samples, [](const Candidates& board, int64_t count) {
    // Twice as many as asked for: some relations are known.
    const std::vector<int64_t> points = drawn_points(board, 4 * count);
    std::vector<PointPair> pairs;
    for (size_t k = 0; k + 1 < points.size(); k += 2) pairs.push_back({points[k], points[k + 1]});
    return pairs;
  });
}

}  // namespace pal::oracle
