// signed_parts: the positive and the negative part of a batch graph, for losses that treat negative weights apart.
#pragma once

#include <cstdint>

#include "core/graph/batch_graph.h"

namespace pal::graph {

// The same graph with every entry max(G_ij, 0). It keeps to layers, one table and a feature pair where that is exact:
// layers without tables; tables that are not negative inside the blocks of the other layers; one column of features.
// Any other mixture is listed pair by pair in the rest: its memory is then the number of positive pairs.
BatchGraph positive_part(const BatchGraph& graph);

struct NegativeDraw {
  int64_t per_row = 64;  // a position with more negative pairs draws this many of them
  uint64_t seed = 0;
  uint64_t step = 0;
};
// The pairs of negative weight, symmetric, as in a SparseRest (self-pairs among them). A pair is kept when one of its
// ends drew it, which happens with probability π; its weight is then G/π, so that sums over pairs are right in the
// mean. At most 2 · per_row · samples entries. Draws depend on (seed, step, position) alone.
SparseRest negative_pairs(const BatchGraph& graph, const NegativeDraw& draw);

}  // namespace pal::graph
