// gold: questions whose answers the labels tell, put among the others to see how well people do.
#pragma once

#include <cstdint>
#include <vector>

#include "core/label/answer_service.h"

namespace pal::launch {

// Makes the ledger (the run's, or the page's own beside a job) hold `count` gold grids of `members`: a labeled sample, and
// others of which about a third are of its class. Drawn by the seed. Throws Error (usage) when fewer than two classes have two labeled samples.
void add_gold(oracle::Ledger& ledger, label::Writer writer, int64_t count, int64_t members,
              const std::vector<int64_t>& labels, uint64_t seed);

}  // namespace pal::launch
