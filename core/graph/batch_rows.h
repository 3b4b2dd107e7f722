// batch_rows: how the sums over a batch graph see it: positions grouped by several layers at once, and single rows.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/batch_graph.h"

namespace pal::graph {

// Positions in groups, numbered in the order of their first member; −1: in none.
struct Grouping {
  std::vector<int32_t> of;  // (samples)
  int32_t groups = 0;
};
// Positions that share a group of both.
Grouping meet(const Grouping& a, const Grouping& b);
Grouping grouping(const BlockLayer& layer);

// The layers without a table; the sets of them below are bit masks over this list.
std::vector<const BlockLayer*> plain_layers(const BatchGraph& graph);
double weight_of_set(const std::vector<const BlockLayer*>& plain, unsigned set);
// For each set but the empty one: positions that share a block of every layer in it.
std::vector<Grouping> meets_of_sets(const std::vector<const BlockLayer*>& plain);

// Positions with the same blocks in all layers with a table have the same row of their sum T.
struct TableProfiles {
  Grouping profile;               // every position is in one; a single one when there are no tables
  std::vector<double> positions;  // (profiles) how many have it
  std::vector<double> table;      // (profiles × profiles) T; empty when there are no tables
  double between(int32_t a, int32_t b) const {
    return table.empty() ? 0 : table[static_cast<int64_t>(a) * profile.groups + b];
  }
};
TableProfiles table_profiles(const BatchGraph& graph);

// Rows of G on positions, one after the other: O(samples) memory.
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
