// similarity_groups: the groups of Deduction::once and the batch graph made of them, against a direct implementation.
#include "core/graph/similarity_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "core/graph/build.h"
#include "kernels/base/philox.h"

namespace pal::graph {
namespace {

struct AnsweredPair {
  int64_t i, j;
  bool same;
};

// The definition, computed from all answers.
class GroupsByDefinition {
 public:
  GroupsByDefinition(const std::vector<int64_t>& labels, const std::vector<AnsweredPair>& answers)
      : labels_(labels), answers_(answers) {
    std::map<int64_t, int64_t> count;
    for (const AnsweredPair& t : answers) count[t.i] += t.same, count[t.j] += t.same;
    for (size_t s = 0; s < labels.size(); ++s) {
      if (labels[s] >= 0) groups_["label " + std::to_string(labels[s])].insert(static_cast<int64_t>(s));
    }
    for (const AnsweredPair& t : answers) {
      if (!t.same) continue;
      const auto rank = [&](int64_t s) { return std::tuple(labels_[s] < 0, -count[s], s); };
      const int64_t center = rank(t.i) < rank(t.j) ? t.i : t.j;
      std::set<int64_t>& group =
          groups_[labels[center] >= 0 ? "label " + std::to_string(labels[center]) : "about " + std::to_string(center)];
      group.insert({t.i, t.j});
    }
  }
  bool same_group(int64_t a, int64_t b) const {
    if (a == b) return true;
    for (const AnsweredPair& t : answers_) {
      if (std::minmax(t.i, t.j) == std::minmax(a, b)) return t.same;
    }
    return std::any_of(groups_.begin(), groups_.end(),
                       [&](const auto& group) { return group.second.count(a) && group.second.count(b); });
  }
  int64_t groups(int64_t s) const {
    return std::count_if(groups_.begin(), groups_.end(), [&](const auto& group) { return group.second.count(s) > 0; });
  }

 private:
  const std::vector<int64_t> labels_;
  const std::vector<AnsweredPair> answers_;
  std::map<std::string, std::set<int64_t>> groups_;
};

// Random answers, right or wrong, each pair once; labels on some samples.
struct RandomAnswers {
  explicit RandomAnswers(uint64_t seed, int64_t n = 24)
      : random(seed, Purpose::bench), store(n, Deduction::once), labels(n, -1) {
    for (int64_t s = 0; s < n; ++s) labels[s] = random.below(8) == 0 ? s % 3 : -1;
    store.set_labels(labels);
    for (int64_t k = 0; k < 30; ++k) {
      const auto i = static_cast<int64_t>(random.below(n)), j = static_cast<int64_t>(random.below(n));
      const bool known = i == j || store.relation(i, j) != Relation::unknown;
      if (known) continue;
      answers.push_back({i, j, random.below(3) > 0});
      store.insert(i, j, answers.back().same ? Relation::same : Relation::different);
    }
  }
  Random random;
  GraphStore store;
  std::vector<int64_t> labels;
  std::vector<AnsweredPair> answers;
};

void expect_weights(const BatchGraph& graph, const std::vector<int64_t>& batch,
                    const std::function<double(int64_t, int64_t)>& weight) {
  check(graph);
  const std::vector<double> g = dense(graph, SelfLoops::on);
  const int64_t n = graph.samples;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j)
      ASSERT_NEAR(g[i * n * graph.views + j], weight(batch[i], batch[j]), 1e-14)
          << "samples " << batch[i] << " " << batch[j];
  }
}

TEST(SimilarityGroups, BatchGraphsFollowTheDefinition) {
  int64_t several = 0, against = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomAnswers made(seed);
    const GroupsByDefinition expected(made.labels, made.answers);
    std::vector<int64_t> batch;
    for (int k = 0; k < 16; ++k) batch.push_back(static_cast<int64_t>(made.random.below(24)));  // some twice
    const auto same_group = [&](int64_t a, int64_t b) { return expected.same_group(a, b) ? 1.0 : 0.0; };
    GraphSpec spec;
    spec.kind = GraphKind::supervised;
    expect_weights(build_batch_graph(made.store, spec, batch, 2), batch, same_group);
    spec.kind = GraphKind::mixed;
    spec.alpha = 0.3;
    expect_weights(build_batch_graph(made.store, spec, batch, 2), batch, [&](int64_t a, int64_t b) {
      return 0.7 * (a == b) + (made.store.known(a) && made.store.known(b) ? 0.3 * same_group(a, b) : 0);
    });
    spec.kind = GraphKind::signs;
    expect_weights(build_batch_graph(made.store, spec, batch, 2), batch, [&](int64_t a, int64_t b) {
      return made.store.relation(a, b) == Relation::different ? -1.0 : same_group(a, b);
    });
    for (int64_t s = 0; s < 24; ++s) {
      const auto count = static_cast<int64_t>(groups_of(made.store, s).size());
      ASSERT_EQ(count, expected.groups(s)) << "sample " << s;
      several += count > 1;
    }
    for (const AnsweredPair& t : made.answers) {
      const std::vector<int64_t> one = groups_of(made.store, t.i), other = groups_of(made.store, t.j);
      against += !t.same && std::find_first_of(one.begin(), one.end(), other.begin(), other.end()) != one.end();
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(several, 100) << "cases with several groups are among them";
  EXPECT_GT(against, 10) << "and pairs that share a group though they were answered to differ";
}

TEST(SimilarityGroups, AWrongAnswerAffectsOneSample) {
  GraphStore once(20, Deduction::once), on(20);
  for (GraphStore* store : {&once, &on}) {
    for (int64_t s = 1; s < 10; ++s) store->insert(0, s, Relation::same);
    for (int64_t s = 11; s < 20; ++s) store->insert(10, s, Relation::same);
    store->insert(10, 5, Relation::same);  // wrong
  }
  const auto wrong = [](const GraphStore& store) {
    int64_t pairs = 0;
    for (int64_t i = 0; i < 10; ++i) {
      for (int64_t j = 10; j < 20; ++j) {
        bool together = false;
        for_each_similarity_group(
            store, i, [&](int64_t a) { for_each_similarity_group(store, j, [&](int64_t b) { together |= a == b; }); });
        pairs += together;
      }
    }
    return pairs;
  };
  EXPECT_EQ(wrong(once), 10) << "of the one sample alone";
  EXPECT_EQ(wrong(on), 100);
}

TEST(SimilarityGroups, RemovedAnswersLeaveTheGroups) {
  GraphStore store(6, Deduction::once);
  for (int64_t s = 1; s < 5; ++s) store.insert(0, s, Relation::same);
  EXPECT_EQ(groups_of(store, 3), std::vector<int64_t>{group_about(0)});
  store.remove({{0, 3}});
  EXPECT_TRUE(groups_of(store, 3).empty());
  EXPECT_EQ(store.partners(0), 3);
}

}  // namespace
}  // namespace pal::graph
