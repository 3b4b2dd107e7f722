// relation_count: against a count over all pairs.
#include "core/oracle/relation_count.h"

#include <gtest/gtest.h>

#include "kernels/base/philox.h"

namespace pal::oracle {
namespace {

TEST(RelationCount, EqualsACountOverAllPairs) {
  int64_t wrong = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed, Purpose::bench);
    const int64_t n = 40;
    std::vector<int64_t> truth, given(n, -1);
    for (int64_t i = 0; i < n; ++i) truth.push_back(static_cast<int64_t>(random.below(4)));
    for (int64_t i = 0; i < n; ++i) {  // a label may be wrong, too
      if (random.below(6) == 0) given[i] = random.below(5) == 0 ? static_cast<int64_t>(random.below(4)) : truth[i];
    }
    for (const graph::Deduction deduction : {graph::Deduction::on, graph::Deduction::once, graph::Deduction::off}) {
      graph::GraphStore store(n, deduction);
      if (seed % 2 == 0 && deduction == graph::Deduction::on) store.set_labels(given);
      for (int64_t k = 0; k < 60; ++k) {
        const auto i = static_cast<int64_t>(random.below(n)), j = static_cast<int64_t>(random.below(n));
        const graph::Relation says =
            (truth[i] == truth[j]) != (random.below(8) == 0) ? graph::Relation::same : graph::Relation::different;
        if (store.relation(i, j) == graph::Relation::unknown) store.insert(i, j, says);
      }
      RelationCount all;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < i; ++j) {
          const graph::Relation r = store.relation(i, j);
          all.known += r != graph::Relation::unknown;
          all.alike += r == graph::Relation::same;
          all.alike_wrong += r == graph::Relation::same && truth[i] != truth[j];
        }
      }
      const RelationCount count = count_relations(store, truth);
      EXPECT_EQ(count.known, all.known);
      EXPECT_EQ(count.alike, all.alike);
      EXPECT_EQ(count.alike_wrong, all.alike_wrong);
      EXPECT_EQ(count_relations(store).known, all.known);
      EXPECT_EQ(count_relations(store).alike_wrong, 0);
      wrong += all.alike_wrong;
    }
  }
  EXPECT_GT(wrong, 100);
}

}  // namespace
}  // namespace pal::oracle
