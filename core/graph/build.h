// build: the graph of a batch, by kind. The batch is the GLOBAL one: the graph does not depend on W.
//
//   ssl         1 between the views of a sample
//   supervised  1 between samples known to be the same (one of which nothing is known is the same as itself)
//   mixed       (1−α)·ssl + α·same, where samples of which nothing is known lie in no component: the rows of Ŷ that are zero
//   signed      +1 known same, −1 known different, 0 unknown
//   table       −ℓ(class, class) between labeled samples: zero-one, or a table
//   regression  y_iᵀ y_j of the targets
//   ranking     −Kendall distance of the targets' orders, in [−1, 0]; a pair tied in one of them counts a half
//   pairs       ssl + the weighted pairs
// Weighted pairs of the store are added to any kind. A sample that comes twice is related to itself.
// Reference: PAPER sections 1 and 3 (the sign of regression).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/store.h"

namespace pal::graph {

// ℓ between classes.
struct LossTable {
  int64_t classes = 0;
  std::vector<double> loss;  // (classes × classes), symmetric
};
// Numbers of each sample: what regression predicts, or scores that rank.
struct Targets {
  int32_t width = 0;
  std::vector<double> values;  // (N × width)
};

struct GraphSpec {
  GraphKind kind = GraphKind::ssl;
  double alpha = 0.5;                      // mixed
  std::shared_ptr<const LossTable> table;  // table; null: zero-one
  std::shared_ptr<const Targets> targets;  // regression, ranking
  double missing = 0;                      // probability that an entry between two samples is not known
  uint64_t seed = 0;                       // of what is missing: the same entries at every step
};

BatchGraph build_batch_graph(const GraphStore& store, const GraphSpec& spec, const std::vector<int64_t>& samples,
                             int32_t views);

// Entries between different samples dropped with this probability, a function of (seed, pair) alone. What is left is
// listed pair by pair.
BatchGraph with_missing_entries(const BatchGraph& graph, const std::vector<int64_t>& samples, double probability,
                                uint64_t seed);

}  // namespace pal::graph
