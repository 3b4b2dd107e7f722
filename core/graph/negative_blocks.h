// negative_blocks: −1 between the components of a batch that answers tell apart.
//
// Hubs (core/graph/hub_pairs.h) that all differ from each other are a clique: two plain layers hold all their pairs. The
// other pairs go to the rest, or into a layer with a table when that is smaller. Labelled components differ by their labels
// and are left out when both are labelled.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/graph/numbering.h"
#include "core/graph/rest_builder.h"
#include "core/graph/store.h"

namespace pal {

class NegativeBlocks {
 public:
  // Deduction::on.
  NegativeBlocks(const GraphStore& store, const std::vector<int64_t>& samples);

  // The sample's component if it is of the clique, −1 otherwise; none of the clique has a label.
  int64_t in_clique(int64_t sample) const;
  // All pairs but those of the clique.
  void add_pairs(BatchGraph& graph, RestBuilder& rest) const;

 private:
  void find_clique();
  std::vector<std::pair<int32_t, int32_t>> other_pairs() const;

  const GraphStore& store_;
  Numbering number_;                              // component of the store → its number in the batch
  std::vector<int64_t> id_;                       // and back
  std::vector<std::vector<int32_t>> positions_;
  std::vector<int32_t> hub_;                      // −1 none
  std::vector<char> in_clique_;
};

}  // namespace pal
