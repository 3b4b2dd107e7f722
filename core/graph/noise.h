// noise: labels and pairs that are wrong on purpose, to see what a loss makes of them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/weighted_edges.h"

namespace pal::graph {

// The pairs of a share, drawn by (seed, pair), change their sign: answers that are wrong.
void flip_weights(std::vector<WeightedPair>& pairs, double share, uint64_t seed);
// A share of the labels ≥ 0, drawn by (seed, sample), is drawn anew from the classes there are.
void redraw_labels(std::vector<int64_t>& labels, double share, uint64_t seed);

}  // namespace pal::graph
