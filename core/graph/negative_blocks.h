// negative_blocks: −1 between the components of a batch that answers tell apart.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/rest_builder.h"
#include "core/graph/store.h"

namespace pal {

// Adds them to the rest, or as a layer with a table when that is smaller. Labelled components differ by their labels and
// are left out when both are labelled.
void add_negative_blocks(const GraphStore& store, const std::vector<int64_t>& samples, BatchGraph& graph, RestBuilder& rest);

}  // namespace pal
