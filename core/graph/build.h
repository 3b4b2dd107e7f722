// build: the graph of a batch, by kind. The batch is the GLOBAL one: the graph does not depend on W.
//
//   ssl         1 between the views of a sample
//   supervised  1 between samples known to be the same; an unknown sample is the same as itself
//   mixed       (1−α)·ssl + α·same; unknown samples have no entry in `same`
//   signed      +1 known same, −1 known different, 0 unknown
//   table       −ℓ(class, class) between labeled samples: zero-one, or a table
//   regression  +y_iᵀ y_j of the targets
//   ranking     −Kendall distance of the targets' orders, in [−1, 0]; a pair tied in one of them counts one half
//   pairs       ssl + the weighted pairs
// Weighted pairs of the store are added to every kind. A sample that occurs twice in the batch is related to itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/store.h"
#include "core/graph/weighted_edges.h"

namespace pal::graph {

// ℓ(a, b) between classes.
struct LossTable {
  int64_t classes = 0;
  std::vector<double> loss;  // (classes × classes), symmetric
};
// Numbers per sample: regression targets, or scores to rank by.
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
  uint64_t seed = 0;                       // selects the missing entries, the same at every step
};

BatchGraph build_batch_graph(const GraphStore& store, const GraphSpec& spec, const std::vector<int64_t>& samples,
                             int32_t views);

// Drops entries between different samples with this probability, drawn by (seed, pair). The result lists the remaining
// pairs in its sparse rest.
BatchGraph with_missing_entries(const BatchGraph& graph, const std::vector<int64_t>& samples, double probability,
                                uint64_t seed);

// Noise, to measure how robust a loss is. A share of the pairs, drawn by (seed, pair), changes its sign.
void flip_weights(std::vector<WeightedPair>& pairs, double share, uint64_t seed);
// A share of the labels ≥ 0, drawn by (seed, sample), is replaced by a class drawn from those that occur.
void redraw_labels(std::vector<int64_t>& labels, double share, uint64_t seed);

}  // namespace pal::graph
