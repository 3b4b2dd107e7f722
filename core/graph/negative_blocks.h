// negative_blocks: −1 between the components of a batch that answers tell apart.
//
// Hubs (core/graph/store/hub_pairs.h) that differ from most of the other hubs are the crowd: two plain layers hold all its pairs,
// and the rest takes back those that are not known to differ (−1 + 1 = 0). The pairs outside the crowd go to the rest, or
// into a layer with a table when that is smaller. Labeled components differ by their labels and are left out when both are
// labeled.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/graph/numbering.h"
#include "core/graph/rest_builder.h"
#include "core/graph/store.h"

namespace pal::graph {

class NegativeBlocks {
 public:
  // Deduction::on.
  NegativeBlocks(const GraphStore& store, const std::vector<int64_t>& samples);

  // The sample's component if it is of the crowd, −1 otherwise; none of the crowd has a label.
  int64_t in_crowd(int64_t sample) const;
  // All pairs outside the crowd, and what takes back pairs of the crowd.
  void add_pairs(BatchGraph& graph, RestBuilder& rest) const;

 private:
  using Pairs = std::vector<std::pair<int32_t, int32_t>>;  // a < b, numbers of components

  void find_crowd();
  void add_to_rest(RestBuilder& rest, const Pairs& pairs, double weight) const;
  Pairs pairs_outside() const;

  const GraphStore& store_;
  Numbering number_;         // component of the store → its number in the batch
  std::vector<int64_t> id_;  // and back
  std::vector<std::vector<int32_t>> positions_;
  std::vector<int32_t> hub_;  // −1 none
  std::vector<char> in_crowd_;
  Pairs not_apart_;  // of the crowd, not known to differ
};

}  // namespace pal::graph
