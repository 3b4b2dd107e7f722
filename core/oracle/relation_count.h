// relation_count: how many pairs of samples have an answered or inferred relation, how many of these are "the same",
// and how many of those are wrong. Wrong positive pairs harm a representation most, and they are few among all pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/store.h"

namespace pal::oracle {

struct RelationCount {
  int64_t known = 0;        // without deduction: the answers
  int64_t alike = 0;        // of them
  int64_t alike_wrong = 0;  // of these, by the true labels
};
// labels: (N) the true ones; empty: none is counted as wrong. O(N + answers).
RelationCount count_relations(const graph::GraphStore& store, const std::vector<int64_t>& labels = {});

}  // namespace pal::oracle
