// layer_share: what one rank holds of a layer of blocks. Every rank derives it from the plan of the batch.
#pragma once

#include <cstdint>
#include <vector>

#include "core/loss/criterion.h"

namespace pal::loss {

// The blocks this rank deals with, numbered anew: first those that have rows on several ranks (the same ones in the same
// order on every rank, so that their sums can be all-reduced), then those that lie on this rank alone. A table relates any
// two blocks: every rank deals with all of them, by their own numbers.
struct LayerShare {
  double weight = 1.0;
  int64_t spanning = 0;
  std::vector<int32_t> row_block;  // (local rows) → number, −1 none
  std::vector<double> rows;        // (blocks dealt with) rows of the block in the global batch
  int64_t blocks() const { return static_cast<int64_t>(rows.size()); }
};

LayerShare layer_share(const graph::BlockLayer& layer, const Batch& batch, int rank);

}  // namespace pal::loss
