// link_fit: the numbers of a link from measured times of collectives.
//
// Math: a time is A·α + B/β with the steps A and bytes B of collective_cost.h: linear, so each piece of a link is a least
//   squares fit of the relative errors. Where the pieces begin is the best choice of measured sizes (Bellman 1961), and
//   their number has the least n·log(mean squared error) + 3·pieces·log(n) (Schwarz 1978): each must be worth its three
//   numbers.
#pragma once

#include <cstddef>
#include <vector>

#include "dist/scale/collective_cost.h"

namespace pal::dist {

// Of ranks that share one node, from times of any collectives. A piece covers at least two sizes, and begins at a measured
// one: libraries switch at round numbers. Four: two protocols, another algorithm, and what no cache holds.
CommLink fit_link(std::vector<CommSample> samples, size_t most_pieces = 4);

}  // namespace pal::dist
