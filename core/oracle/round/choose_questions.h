// choose_questions: what a round asks, and why it asks nothing. For rounds of a job (dist/train/query_round.h) and without one (pal ask, pal label).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/oracle/ledger/ledger.h"
#include "core/oracle/oracle.h"
#include "core/oracle/stop_rules.h"

namespace pal::oracle {

// The rule that ends the questions now, by what the ledger holds. samples: that may be asked about; empty: all.
StopReason reason_to_stop(const StopLimits& limits, const Ledger& ledger, const graph::GraphStore& store,
                          const std::vector<int64_t>& samples, int64_t step);

// Why a round that may ask, and whose sampler was asked, has no question.
enum class NoQuestion : int8_t {
  none,     // it has
  silent,   // the sampler never asks
  empty,    // there is no sample to ask about
  waiting,  // what is left is out, and not answered or not in effect yet
  closed,   // what is left was answered, and nothing can be known of it (Round::closed)
  pool,     // the sampler finds nothing in this pool; another one may hold something
};

struct Chosen {
  std::vector<Query> queries = {};
  NoQuestion why = NoQuestion::none;
};
// The sampler's choice without what must not be asked again. When it sees nothing but that, it chooses once more without the
// samples of those pairs.
Chosen choose_questions(const QuerySampler& sampler, const graph::GraphStore& store, const Pool& pool,
                        const Round& round);

// "every question that is left is out: 12 wait for an answer". open: questions without enough answers.
std::string to_sentence(NoQuestion why, const QuerySampler& sampler, int64_t open, int64_t pool);

}  // namespace pal::oracle
