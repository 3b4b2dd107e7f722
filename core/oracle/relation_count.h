// relation_count: how many pairs of samples have a relation that is known or implied, how many are alike, and how many of those
// are not. Wrong "alike" is what spoils a representation: few pairs are alike, so it hides among all relations.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/store.h"

namespace pal::oracle {

struct RelationCount {
  int64_t known = 0;        // without deduction the answers
  int64_t alike = 0;        // of them
  int64_t alike_wrong = 0;  // of these, by the true labels
};
// labels: (N) the true ones; empty: nothing is wrong. O(N + answers).
RelationCount count_relations(const graph::GraphStore& store, const std::vector<int64_t>& labels = {});

}  // namespace pal::oracle
