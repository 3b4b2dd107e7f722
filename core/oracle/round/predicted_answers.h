// predicted_answers: what the model thinks the answers will be, before anybody is asked.
#pragma once

#include <vector>

#include "core/oracle/oracle.h"

namespace pal::oracle {

// Collective over the pool's ranks. Fills Query::expected. A member is expected to be the same when, by cosine in the embedding, its nearest other sample of
// the pool whose place is known (GraphStore::known) belongs to the template's component, and to differ otherwise. Unknown for
// a member that is not in the pool; nothing is filled without embeddings, while fewer than two places are known, and for
// coarse questions.
void predict_answers(const graph::GraphStore& store, const Pool& pool, std::vector<Query>& queries);

}  // namespace pal::oracle
