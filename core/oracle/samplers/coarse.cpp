// coarse: "is it one of these?" about the top nodes of the taxonomy until the groups are reliable, then about the
// classes that are left. Reliable: a class model of the groups, fitted on every other known member, places at least
// oracle.coarse_accuracy of the remaining ones right, and every group has five. parents: as Dataset::parents, classes
// first.
#include <algorithm>
#include <map>
#include <set>

#include "core/oracle/samplers/samplers.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

// The node right below the root that a class lies under; the root itself where classes hang in several trees.
int64_t top_node(const std::vector<int64_t>& parents, int64_t label) {
  const auto roots = std::count(parents.begin(), parents.end(), -1);
  int64_t node = label;
  for (size_t steps = 0; parents[node] >= 0; ++steps) {
    PAL_DATA_CHECK(steps < parents.size() && parents[node] < static_cast<int64_t>(parents.size()),
                   "the taxonomy has a cycle or an unknown parent at node", node,
                   "import the data set with a tree of classes");
    if (roots == 1 && parents[parents[node]] < 0) break;
    node = parents[node];
  }
  return node;
}

class Coarse final : public QuerySampler {
 public:
  Coarse(const PointOptions& options, std::vector<int64_t> parents, double accuracy)
      : options_(options), parents_(std::move(parents)), accuracy_(accuracy) {
    PAL_CHECK(!parents_.empty(), "oracle.sampler=coarse needs a data set with a taxonomy", "",
              "import the data set with --parents, or choose another sampler");
    PAL_CHECK(options.templates == Templates::given, "oracle.sampler=coarse does not work with oracle.templates={}",
              "discover", "set oracle.templates=given: a group is known by its classes");
    for (size_t node = 0; node < parents_.size(); ++node)
      top_node(parents_, static_cast<int64_t>(node));  // finds a cycle at the start
  }
  std::string name() const override { return "coarse"; }
  PoolNeeds needs() const override { return PoolNeeds::embeddings; }
  RefusedOrder refused_order() const override { return RefusedOrder::first; }

  std::vector<Query> choose(const graph::GraphStore& store, const Pool& pool, const Round& round) const override {
    if (pool.samples.empty() || round.questions <= 0) return {};
    Candidates board(store, pool, round, options_.templates);
    const auto classes = static_cast<int64_t>(board.classes().size());
    std::vector<int64_t> group;  // of each class
    std::map<int64_t, int64_t> number;
    std::vector<int64_t> nodes;
    for (const PointClass& c : board.classes()) {
      PAL_DATA_CHECK(c.label < static_cast<int64_t>(parents_.size()), "the taxonomy has no class {}", c.label,
                     "import the data set again");
      const int64_t node = top_node(parents_, c.label);
      const auto [at, fresh] = number.emplace(node, static_cast<int64_t>(nodes.size()));
      if (fresh) nodes.push_back(node);
      group.push_back(at->second);
    }
    // A coarse no excludes the classes of a group, a yes all other classes.
    std::set<int64_t> placed;
    for (const Decision& d : round.coarse) {
      if (d.verdict != Verdict::yes && d.verdict != Verdict::no) continue;
      for (int64_t c = 0; c < classes; ++c) {
        if ((nodes[group[c]] == d.node) == (d.verdict == Verdict::no)) board.rule_out(d.j, c);
      }
      if (d.verdict == Verdict::yes) placed.insert(board.unit(d.j));
    }
    const ClassModel model(board.pool(), board.row_class(), classes, options_.model);
    const std::vector<int64_t> order = refused_first(board, board.by_draw());
    const std::vector<Belief> all = beliefs(board, model, order);
    if (nodes.size() < 2 || groups_are_reliable(board, group, static_cast<int64_t>(nodes.size()))) {
      return ask_points(board, order, all, options_.members, round.questions);
    }
    return ask_groups(board, order, all, group, nodes, placed);
  }

 private:
  // Coarse questions about the points not placed yet; fine ones about the others.
  std::vector<Query> ask_groups(Candidates& board, const std::vector<int64_t>& order, const std::vector<Belief>& all,
                                const std::vector<int64_t>& group, const std::vector<int64_t>& nodes,
                                const std::set<int64_t>& placed) const {
    std::vector<Query> queries;
    std::map<int64_t, size_t> grid;  // group → its last query
    std::vector<int64_t> fine;
    std::vector<Belief> fine_beliefs;
    int64_t left = board.round().questions;
    for (size_t k = 0; k < order.size() && left > 0; ++k) {
      const Point& point = board.points()[order[k]];
      const int64_t c = all[k].first;
      if (c < 0 || !board.open(order[k], c)) continue;
      std::set<int64_t> ruled;
      for (int64_t e : board.excluded(order[k])) ruled.insert(e);
      std::set<int64_t> groups_left;
      for (size_t e = 0; e < group.size(); ++e) {
        if (!ruled.count(static_cast<int64_t>(e))) groups_left.insert(group[e]);
      }
      --left;
      if (placed.count(point.unit) || groups_left.size() < 2) {
        fine.push_back(order[k]);
        fine_beliefs.push_back(all[k]);
        continue;
      }
      board.take(order[k]);
      const auto at = grid.find(group[c]);
      if (at == grid.end() || static_cast<int64_t>(queries[at->second].members.size()) == options_.members) {
        grid[group[c]] = queries.size();
        queries.push_back(
            {.kind = QueryKind::coarse, .template_sample = board.classes()[c].sample, .node = nodes[group[c]]});
      }
      queries[grid[group[c]]].members.push_back(point.sample);
    }
    for (Query& q :
         ask_points(board, fine, fine_beliefs, options_.members, board.round().questions - question_count(queries)))
      queries.push_back(std::move(q));
    return queries;
  }

  bool groups_are_reliable(const Candidates& board, const std::vector<int64_t>& group, int64_t groups) const {
    constexpr int64_t kLeast = 5;
    std::vector<int64_t> taught(board.row_class().size(), -1), asked = taught, seen(static_cast<size_t>(groups), 0);
    for (size_t row = 0; row < taught.size(); ++row) {
      if (board.row_class()[row] < 0) continue;
      const int64_t g = group[board.row_class()[row]];
      (seen[g]++ % 2 == 0 ? taught : asked)[row] = g;
    }
    if (*std::min_element(seen.begin(), seen.end()) < kLeast) return false;
    const PoolRows& pool = board.pool();
    const ClassModel model(pool, taught, groups, options_.model);
    const at::Tensor scores = model.scores(pool.here());
    std::vector<int64_t> seen_right = {0, 0};  // asked, and placed right
    for (size_t k = 0; k < pool.rows_here().size(); ++k) {
      const int64_t g = asked[pool.rows_here()[k]];
      if (g < 0) continue;
      const float* s = scores.const_data_ptr<float>() + static_cast<int64_t>(k) * groups;
      ++seen_right[0];
      seen_right[1] += std::max_element(s, s + groups) - s == g;
    }
    pool.complete(seen_right);
    return static_cast<double>(seen_right[1]) >= accuracy_ * static_cast<double>(seen_right[0]);
  }

  const PointOptions options_;
  const std::vector<int64_t> parents_;
  const double accuracy_;
};

}  // namespace

std::unique_ptr<QuerySampler> coarse_sampler(const OracleSpec& settings, const std::vector<int64_t>& parents) {
  return std::make_unique<Coarse>(point_options(settings), parents, settings.coarse_accuracy);
}

}  // namespace pal::oracle
