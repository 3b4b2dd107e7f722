// gold: questions whose answers are known by labels, mixed with the others to measure how well people do.
#pragma once

#include <cstdint>
#include <vector>

#include "core/label/answer_service.h"

namespace pal::launch {

// Adds gold grids of `members` until the ledger (the run's, or with Writer::job the page's own) holds `count`: a
// labeled sample, and others of which about a third are of its class. Drawn by the seed. Throws Error (usage) when
// fewer than two classes have two labeled samples.
void add_gold(oracle::Ledger& ledger, label::Writer writer, int64_t count, int64_t members,
              const std::vector<int64_t>& labels, uint64_t seed);

}  // namespace pal::launch
