// labeler: the simulated labeler, which answers from the data set's labels.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/oracle/oracle.h"

namespace pal {

struct SimulatedOptions {
  double noise = 0;     // share of the answers that are flipped, drawn by (seed, Purpose::noise, query, member)
  uint64_t seed = 0;
  double cost = 1;      // of one answer
};

// labels (N), −1 unknown: a question about such a sample is answered `unknown`.
std::unique_ptr<Labeler> make_simulated_labeler(std::vector<int64_t> labels, const SimulatedOptions& options);

}  // namespace pal
