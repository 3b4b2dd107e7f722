// signed_parts: the positive and the negative part of a batch graph, for losses that treat negative weights separately.
#pragma once

#include <cstdint>

#include "core/graph/batch_graph.h"

namespace pal::graph {

// The same graph with every entry max(G_ij, 0). The result uses layers, one table and two feature layers where that is
// exact: plain layers; tables that are not negative inside the blocks of other layers; one column of features.
// Any other graph is listed pair by pair in the rest, with memory proportional to the positive pairs.
BatchGraph positive_part(const BatchGraph& graph);

struct NegativeDraw {
  int64_t per_row = 64;  // a position with more negative pairs draws this many
  uint64_t seed = 0;
  uint64_t step = 0;
};
// The pairs of negative weight as a symmetric SparseRest, self-pairs included. A pair is kept when one of its ends
// draws it, with probability π; its weight is then G/π, so that sums over pairs are unbiased. At most 2 · per_row ·
// samples entries. Draws depend on (seed, step, position) alone.
SparseRest negative_pairs(const BatchGraph& graph, const NegativeDraw& draw);

}  // namespace pal::graph
