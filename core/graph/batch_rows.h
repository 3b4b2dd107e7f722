// batch_rows: views of a batch graph for sums: positions grouped by several layers at once, and single rows.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/batch_graph.h"

namespace pal::graph {

// A partition of positions. Groups are numbered in the order of their first member; −1 means no group.
struct Grouping {
  std::vector<int32_t> of;  // (samples)
  int32_t groups = 0;
};
// Two positions share a group of the intersection when they share a group of a and of b.
Grouping intersection(const Grouping& a, const Grouping& b);
Grouping grouping(const BlockLayer& layer);

// The layers without a table. A set of them is a bit mask over this list.
std::vector<const BlockLayer*> plain_layers(const BatchGraph& graph);
double weight_of_set(const std::vector<const BlockLayer*>& plain, unsigned set);
// For each non-empty set: positions that share a block of every layer of the set.
std::vector<Grouping> intersections_of_sets(const std::vector<const BlockLayer*>& plain);

// Positions with the same blocks in all layers with a table form a profile. They have the same row of T, the sum of
// tables.
struct TableProfiles {
  Grouping profile;               // every position has one; without tables there is one profile
  std::vector<double> positions;  // (profiles) number of positions
  std::vector<double> table;      // (profiles × profiles) T; empty without tables
  double between(int32_t a, int32_t b) const {
    return table.empty() ? 0 : table[static_cast<int64_t>(a) * profile.groups + b];
  }
};
TableProfiles table_profiles(const BatchGraph& graph);

// Reads G on positions row by row, in O(samples) memory.
class RowReader {
 public:
  explicit RowReader(const BatchGraph& graph);
  // G_pq for all q.
  void read(int64_t p, std::vector<double>& row) const;

 private:
  const BatchGraph& graph_;
  std::vector<std::vector<double>> columns_;  // of each feature layer: (width × samples)
};

}  // namespace pal::graph
