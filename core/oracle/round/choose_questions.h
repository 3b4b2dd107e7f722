// choose_questions: the questions of a round, the answers that the model predicts for them, or why there is no
// question.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/oracle/oracle.h"

namespace pal::oracle {

// Why a round that may ask has no question.
enum class NoQuestion : int8_t {
  none,     // it has questions
  silent,   // the sampler never asks
  empty,    // there is no sample to ask about
  waiting,  // what is left has been asked; its answers are missing or not in effect yet
  closed,   // what is left was answered without a usable result (Round::closed)
  pool,     // the sampler finds nothing in this pool; another pool may hold something
};

struct Chosen {
  std::vector<Query> queries = {};
  NoQuestion why = NoQuestion::none;
};
// The sampler's choice without closed pairs. When the sampler chose closed pairs only, it chooses once more, without
// the samples of those pairs. Collective over the pool's ranks.
Chosen choose_questions(const QuerySampler& sampler, const graph::GraphStore& store, const Pool& pool,
                        const Round& round);

// Collective over the pool's ranks. Fills Query::expected with what the model predicts before the question is asked. A
// member is predicted to be the same when its nearest other sample of the pool (by cosine in the embedding) that the
// graph knows (GraphStore::known) belongs to the template's component, and to differ otherwise. Unknown for a member
// that is not in the pool; nothing is filled without embeddings, while fewer than two samples are known, and for coarse
// questions.
void predict_answers(const graph::GraphStore& store, const Pool& pool, std::vector<Query>& queries);

// "every remaining question has been asked: 12 are unanswered". open: questions without enough answers.
std::string to_sentence(NoQuestion why, const QuerySampler& sampler, int64_t open, int64_t pool);

}  // namespace pal::oracle
