// store: against a brute-force closure of the answers.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "core/graph/store.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal {
namespace {

// Every relation of n samples in a table, closed by exhaustion after each answer.
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

TEST(GraphStore, EqualsTheClosureOfRandomAnswers) {
  int contradictions = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed, Purpose::bench);
    const int n = 14;
    GraphStore store(n);
    Closure closure(n);
    for (int step = 0; step < 45; ++step) {
      const int i = static_cast<int>(random.below(n)), j = static_cast<int>(random.below(n));
      // Mostly consistent with three classes, sometimes wrong: contradictions must be refused and change nothing.
      const bool same = (i % 3 == j % 3) != (random.below(10) == 0);
      if (closure.insert(i, j, same ? 1 : -1)) {
        store.insert(i, j, same ? Relation::same : Relation::different);
      } else {
        const uint64_t version = store.version(), fingerprint = store.fingerprint();
        EXPECT_THROW(store.insert(i, j, same ? Relation::same : Relation::different), Error);
        EXPECT_EQ(store.version(), version);
        EXPECT_EQ(store.fingerprint(), fingerprint);
        ++contradictions;
      }
      expect_equal(store, closure);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(contradictions, 12);
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
  both(1, 5, 1);   // 1 and 4 take class 3
  EXPECT_EQ(store.label(4), 3);
  EXPECT_EQ(store.label(6), -1);
  EXPECT_THROW(store.insert(4, 7, Relation::same), Error);
}

TEST(GraphStore, RefusesWhatMakesNoSense) {
  GraphStore store(3);
  const auto message = [](const auto& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::data);
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message([&] { store.insert(0, 3, Relation::same); }).find("3"), std::string::npos);
  EXPECT_NE(message([&] { store.insert(1, 1, Relation::different); }).find("samples 1 and 1"), std::string::npos);
  EXPECT_NE(message([&] { GraphStore(2).set_labels({0}); }).find("2 samples"), std::string::npos);
  EXPECT_NE(message([&] { GraphStore(2).set_labels({0, -2}); }).find("sample 1"), std::string::npos);
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

TEST(GraphStore, ImageNetSizeIsQuick) {
  const int64_t n = 1281167;
  std::vector<int64_t> labels(n);
  for (int64_t i = 0; i < n; ++i) labels[i] = (i * 7919) % 1000;
  const auto start = std::chrono::steady_clock::now();
  GraphStore store(n);
  store.set_labels(labels);
  EXPECT_EQ(store.components(), 1000);
  EXPECT_EQ(store.relation(0, 1000), Relation::same);
  EXPECT_EQ(store.relation(0, 1), Relation::different);
  // Ten times the bound: this guards the complexity, the benchmark measures.
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 20);
}

TEST(GraphStore, MergesOfComponentsWithManyNegatives) {
  // Stars whose centres are merged one into the next: moving the larger list each time would be quadratic.
  const int64_t stars = 300, leaves = 300;
  GraphStore store(stars * (leaves + 1));
  const auto centre = [&](int64_t s) { return s * (leaves + 1); };
  for (int64_t s = 0; s < stars; ++s) {
    for (int64_t l = 1; l <= leaves; ++l) store.insert(centre(s), centre(s) + l, Relation::different);
    if (s > 0) store.insert(centre(s - 1), centre(s), Relation::same);
  }
  EXPECT_EQ(store.component_size(0), stars);
  EXPECT_EQ(store.relation(0, centre(stars - 1) + leaves), Relation::different);
  EXPECT_EQ(store.relation(1, 2), Relation::unknown);
}

}  // namespace
}  // namespace pal
