// store: relations and proofs against a brute-force closure of the answers.
#include "core/graph/store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/philox.h"
#include "tests/support.h"

namespace pal::graph {
namespace {

// A table of all relations of n samples, closed exhaustively after each answer.
class Closure {
 public:
  explicit Closure(int n) : n_(n), r_(n * n, 0) {
    for (int i = 0; i < n; ++i) r_[i * n + i] = 1;
  }
  int at(int i, int j) const { return r_[i * n_ + j]; }
  bool insert(int i, int j, int value) {
    if (at(i, j) != 0) return at(i, j) == value;
    r_[i * n_ + j] = r_[j * n_ + i] = value;
    for (bool changed = true; changed;) {
      changed = false;
      for (int a = 0; a < n_; ++a) {
        for (int b = 0; b < n_; ++b) {
          if (at(a, b) != 1) continue;
          for (int c = 0; c < n_; ++c) {
            if (at(b, c) == 0 || at(a, c) != 0) continue;
            r_[a * n_ + c] = r_[c * n_ + a] = at(b, c);
            changed = true;
          }
        }
      }
    }
    return true;
  }

 private:
  int n_;
  std::vector<int> r_;
};

void expect_equal(const GraphStore& store, const Closure& closure) {
  const int n = static_cast<int>(store.samples());
  int64_t components = 0;
  for (int i = 0; i < n; ++i) {
    int64_t size = 0;
    bool first = true;
    for (int j = 0; j < n; ++j) {
      ASSERT_EQ(static_cast<int>(store.relation(i, j)), closure.at(i, j)) << i << " " << j;
      ASSERT_EQ(store.component(i) == store.component(j), closure.at(i, j) == 1);
      if (closure.at(i, j) == 1) {
        ++size;
        first = first && j >= i;
      }
    }
    components += first;
    ASSERT_EQ(store.component_size(i), size);
    ASSERT_EQ(store.known(i), size > 1 || store.label(i) >= 0);
  }
  ASSERT_EQ(store.components(), components);
}

struct Answered {
  int i, j, value;
};

// Checks that the chain leads from i to j by given answers or labels, at most one of them "different".
void expect_chain_holds(const GraphStore& store, int64_t i, int64_t j, const std::vector<int64_t>& labels = {}) {
  const std::vector<Link> chain = store.explain(i, j);
  const Relation relation = store.relation(i, j);
  if (relation == Relation::unknown || i == j) {
    ASSERT_TRUE(chain.empty());
    return;
  }
  int64_t at = i, different = 0;
  for (const Link& link : chain) {
    ASSERT_EQ(link.i, at);
    at = link.j;
    different += link.relation == Relation::different;
    if (link.answer == Link::kByLabels) {
      ASSERT_FALSE(labels.empty());
      ASSERT_TRUE(labels[link.i] >= 0 && labels[link.j] >= 0);
      ASSERT_EQ(labels[link.i] == labels[link.j], link.relation == Relation::same);
      continue;
    }
    const Link given = store.answer(link.answer);
    ASSERT_EQ(given.relation, link.relation);
    ASSERT_EQ(std::minmax(given.i, given.j), std::minmax(link.i, link.j));
  }
  ASSERT_EQ(at, j);
  ASSERT_EQ(different, relation == Relation::different ? 1 : 0) << to_string(chain);
}

// Random answers, repeats and removals, mostly consistent with three classes, sometimes wrong. A contradiction must be
// refused with its chain and change nothing; a removed answer must leave no trace.
TEST(GraphStore, EqualsTheClosureOfRandomAnswers) {
  int contradictions = 0, removals = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed, Purpose::bench);
    const int n = 14;
    GraphStore store(n);
    std::vector<int64_t> labels;
    if (seed % 2 == 1) {
      for (int i = 0; i < n; ++i) labels.push_back(random.below(4) == 0 ? i % 3 : -1);
      store.set_labels(labels);
    }
    std::vector<Answered> answers;
    const auto closed = [&] {
      Closure closure(n);
      for (int i = 0; i < n && !labels.empty(); ++i) {
        for (int j = 0; j < i; ++j) {
          if (labels[i] >= 0 && labels[j] >= 0) closure.insert(i, j, labels[i] == labels[j] ? 1 : -1);
        }
      }
      for (const Answered& t : answers) closure.insert(t.i, t.j, t.value);
      return closure;
    };
    for (int step = 0; step < 45; ++step) {
      const int i = static_cast<int>(random.below(n)), j = static_cast<int>(random.below(n));
      const bool same = (i % 3 == j % 3) != (random.below(10) == 0);
      const auto relation = same ? Relation::same : Relation::different;
      const uint64_t version = store.version(), fingerprint = store.fingerprint();
      if (!answers.empty() && random.below(8) == 0) {
        const Answered back = answers[random.below(answers.size())];
        const auto on_pair = [&](const Answered& t) { return std::minmax(t.i, t.j) == std::minmax(back.i, back.j); };
        const auto count = std::count_if(answers.begin(), answers.end(), on_pair);
        if (back.i == back.j) continue;
        ASSERT_EQ(store.remove({{back.j, back.i}}), count);
        answers.erase(std::remove_if(answers.begin(), answers.end(), on_pair), answers.end());
        EXPECT_NE(store.fingerprint(), fingerprint);
        ++removals;
      } else if (Closure closure = closed(); closure.insert(i, j, same ? 1 : -1)) {
        store.insert(i, j, relation);
        answers.push_back({i, j, same ? 1 : -1});
        EXPECT_GT(store.version(), version);
      } else {
        const std::string error = error_of(Exit::data, [&] { store.insert(i, j, relation); });
        EXPECT_TRUE(contains(error, to_string(store.explain(i, j)))) << error;
        EXPECT_EQ(store.version(), version);
        EXPECT_EQ(store.fingerprint(), fingerprint);
        ++contradictions;
      }
      expect_equal(store, closed());
      for (int a = 0; a < n; ++a) {
        for (int b = 0; b < n; ++b) expect_chain_holds(store, a, b, labels);
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(contradictions, 12);
  EXPECT_GT(removals, 12);
}

// Without deduction only labels and the answered pairs themselves count.
TEST(GraphStore, WithoutDeductionOnlyWhatWasAnsweredCounts) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed, Purpose::bench);
    const int n = 12;
    GraphStore store(n, Deduction::off);
    std::vector<int64_t> labels(n, -1);
    for (int i = 0; i < n; ++i) labels[i] = random.below(3) == 0 ? static_cast<int64_t>(random.below(2)) : -1;
    store.set_labels(labels);
    std::vector<int> direct(n * n, 0), reach(n * n, 0);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        if (i == j) direct[i * n + j] = 1;
        if (i != j && labels[i] >= 0 && labels[j] >= 0) direct[i * n + j] = labels[i] == labels[j] ? 1 : -1;
      }
    }
    std::vector<std::pair<int, int>> pairs;
    const auto set = [&](int i, int j, int value) { direct[i * n + j] = direct[j * n + i] = value; };
    for (int step = 0; step < 60; ++step) {
      const int i = static_cast<int>(random.below(n)), j = static_cast<int>(random.below(n));
      const int value = random.below(2) == 0 ? 1 : -1;
      if (!pairs.empty() && random.below(6) == 0) {
        const auto [a, b] = pairs[random.below(pairs.size())];
        pairs.erase(std::remove(pairs.begin(), pairs.end(), std::pair(a, b)), pairs.end());
        ASSERT_EQ(store.remove({{a, b}}), 1);
        set(a, b, 0);
      } else if (direct[i * n + j] == 0) {
        store.insert(i, j, static_cast<Relation>(value));
        pairs.emplace_back(i, j);
        set(i, j, value);
      } else if (direct[i * n + j] != value) {
        EXPECT_THROW(store.insert(i, j, static_cast<Relation>(value)), Error);
      }
      reach = direct;  // the components are those of the positive answers and labels
      for (int b = 0; b < n; ++b) {
        for (int a = 0; a < n; ++a) {
          for (int c = 0; c < n; ++c) {
            if (reach[a * n + b] == 1 && reach[b * n + c] == 1) reach[a * n + c] = 1;
          }
        }
      }
      for (int a = 0; a < n; ++a) {
        for (int b = 0; b < n; ++b) {
          ASSERT_EQ(static_cast<int>(store.relation(a, b)), direct[a * n + b]) << a << " " << b;
          ASSERT_EQ(store.component(a) == store.component(b), reach[a * n + b] == 1) << a << " " << b;
          expect_chain_holds(store, a, b, labels);
          ASSERT_LE(store.explain(a, b).size(), 1u);
        }
        ASSERT_EQ(store.label(a), labels[a]);
      }
      if (HasFailure()) return;
    }
  }
}

TEST(GraphStore, ContradictionsNameTheChainBehindThem) {
  GraphStore store(10);
  store.set_labels({7, -1, -1, -1, -1, -1, -1, 9, 7, -1});
  store.insert(1, 2, Relation::same);
  store.insert(3, 2, Relation::same);
  store.insert(4, 3, Relation::different);
  store.insert(5, 4, Relation::same);
  EXPECT_EQ(to_string(store.explain(1, 5)), "1 = 2 (answer 0), 2 = 3 (answer 1), 3 ≠ 4 (answer 2), 4 = 5 (answer 3)");
  EXPECT_EQ(to_string(store.explain(5, 1)), "5 = 4 (answer 3), 4 ≠ 3 (answer 2), 3 = 2 (answer 1), 2 = 1 (answer 0)");
  store.insert(5, 8, Relation::same);
  EXPECT_EQ(to_string(store.explain(4, 7)), "4 = 5 (answer 3), 5 = 8 (answer 4), 8 ≠ 7 (labels)");
  EXPECT_EQ(to_string(store.explain(0, 5)), "0 = 8 (labels), 8 = 5 (answer 4)");
  const std::string error = error_of(Exit::data, [&] { store.insert(2, 5, Relation::same); });
  EXPECT_TRUE(contains(error, "by 2 = 3 (answer 1), 3 ≠ 4 (answer 2), 4 = 5 (answer 3)")) << error;
  store.remove({{3, 4}});  // this answer was wrong
  store.insert(3, 4, Relation::same);
  store.insert(2, 5, Relation::same);
  EXPECT_EQ(store.label(1), 7);
  EXPECT_EQ(store.remove({{0, 9}}), 0);

  GraphStore path(40);
  for (int64_t i = 0; i + 1 < 40; ++i) path.insert(i, i + 1, Relation::same);
  EXPECT_EQ(path.explain(0, 39).size(), 39u);
  EXPECT_NE(to_string(path.explain(0, 39)).find("3 = 4 (answer 3), … 31 more …, 35 = 36 (answer 35)"),
            std::string::npos)
      << to_string(path.explain(0, 39));
}

TEST(GraphStore, RemovedAnswersLeaveNoTrace) {
  GraphStore store(6), fresh(6);
  store.insert(0, 1, Relation::same);
  store.insert(1, 2, Relation::same);
  store.insert(0, 2, Relation::same);  // implied, but it remains when 1 − 2 is removed
  store.insert(3, 4, Relation::different);
  EXPECT_EQ(store.remove({{2, 1}, {4, 3}}), 2);
  EXPECT_EQ(store.relation(1, 2), Relation::same);
  EXPECT_EQ(store.relation(3, 4), Relation::unknown);
  EXPECT_EQ(store.answers(), 2);
  EXPECT_EQ(store.components(), 4);
  fresh.insert(0, 1, Relation::same);
  fresh.insert(0, 2, Relation::same);
  EXPECT_NE(store.fingerprint(), fresh.fingerprint())
      << "the fingerprint is of the changes, not of the remaining relations";
}

TEST(GraphStore, LabelsThenAnswers) {
  GraphStore store(8);
  store.set_labels({7, -1, 3, 7, -1, 3, -1, 9});
  Closure closure(8);
  closure.insert(0, 3, 1);
  closure.insert(2, 5, 1);
  closure.insert(0, 2, -1);
  closure.insert(0, 7, -1);
  closure.insert(2, 7, -1);
  expect_equal(store, closure);
  EXPECT_EQ(store.label(3), 7);
  EXPECT_EQ(store.label(1), -1);
  const auto both = [&](int i, int j, int value) {
    ASSERT_TRUE(closure.insert(i, j, value));
    store.insert(i, j, static_cast<Relation>(value));
    expect_equal(store, closure);
  };
  both(1, 0, -1);
  both(4, 1, 1);
  both(6, 4, -1);
  both(1, 5, 1);  // 1 and 4 get class 3
  EXPECT_EQ(store.label(4), 3);
  EXPECT_EQ(store.label(6), -1);
  EXPECT_THROW(store.insert(4, 7, Relation::same), Error);
}

TEST(GraphStore, GroupsThenAnswers) {
  GraphStore store(8);
  store.set_groups({7, -1, 3, 7, -1, 3, -1, 9});
  Closure closure(8);
  closure.insert(0, 3, 1);
  closure.insert(2, 5, 1);
  expect_equal(store, closure);  // two groups are neither the same nor different
  EXPECT_EQ(store.label(3), -1);
  const auto both = [&](int i, int j, int value) {
    ASSERT_TRUE(closure.insert(i, j, value));
    store.insert(i, j, static_cast<Relation>(value));
    expect_equal(store, closure);
  };
  both(3, 5, 1);
  both(0, 7, -1);
  both(1, 2, 1);
  EXPECT_THROW(store.insert(1, 7, Relation::same), Error);
  EXPECT_THROW(store.insert(0, 3, Relation::different), Error) << "a group is given";
  EXPECT_EQ(store.remove({{3, 5}}), 1);
  EXPECT_EQ(store.relation(0, 3), Relation::same);
  EXPECT_EQ(store.relation(0, 2), Relation::unknown);
  GraphStore labeled(8);
  labeled.set_labels({7, -1, 3, 7, -1, 3, -1, 9});
  GraphStore grouped(8);
  grouped.set_groups({7, -1, 3, 7, -1, 3, -1, 9});
  EXPECT_NE(labeled.fingerprint(), grouped.fingerprint());
}

TEST(GraphStore, RefusesInvalidInput) {
  GraphStore store(3);
  const auto message = [](const auto& call) { return error_of(Exit::data, call); };
  EXPECT_TRUE(contains(message([&] { store.insert(0, 3, Relation::same); }), "3"));
  EXPECT_TRUE(contains(message([&] { store.insert(1, 1, Relation::different); }), "samples 1 and 1"));
  EXPECT_TRUE(contains(message([&] { GraphStore(2).set_labels({0}); }), "2 samples"));
  EXPECT_TRUE(contains(message([&] { GraphStore(2).set_labels({0, -2}); }), "sample 1"));
  EXPECT_THROW(store.insert(0, 1, Relation::unknown), Error);
  EXPECT_EQ(store.version(), 0u);
}

TEST(GraphStore, FingerprintFollowsTheInserts) {
  const auto filled = [](std::vector<std::array<int, 3>> answers) {
    GraphStore store(6);
    for (const auto& a : answers) store.insert(a[0], a[1], static_cast<Relation>(a[2]));
    return store.fingerprint();
  };
  EXPECT_EQ(filled({{0, 1, 1}, {2, 3, -1}}), filled({{1, 0, 1}, {3, 2, -1}}));
  EXPECT_NE(filled({{0, 1, 1}, {2, 3, -1}}), filled({{2, 3, -1}, {0, 1, 1}}));
  EXPECT_NE(filled({{0, 1, 1}}), filled({{0, 1, -1}}));
  EXPECT_NE(filled({}), GraphStore(7).fingerprint());
  GraphStore a(2), b(2);
  a.set_labels({0, 1});
  b.set_labels({0, 0});
  EXPECT_NE(a.fingerprint(), b.fingerprint());
}

}  // namespace
}  // namespace pal::graph
