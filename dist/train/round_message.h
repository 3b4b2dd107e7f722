// round_message: what rank 0's oracle tells every rank: the decisions of a round and where it stands, by one broadcast; and, while
// the ranks choose questions, which ones are out.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/comm/comm.h"
#include "core/oracle/ledger/question.h"
#include "core/oracle/stop_rules.h"

namespace pal::dist {

struct RoundMessage {
  int64_t asked = 0;  // questions in the ledger
  int64_t open = 0;   // of them, without enough answers
  oracle::StopReason stop = oracle::StopReason::none;
  std::vector<oracle::Decision> decisions = {};
};

// Collective. Rank 0's message, on every rank. Of a fixed size when there are at most `expected` decisions, so that one
// broadcast is enough; a larger message says so in its head, and the rest follows in a second one.
RoundMessage broadcast_round(const RoundMessage& message, int64_t expected, comm::Comm& comm);

// Collective. Rank 0's queries, on every rank: what they ask, not who chose them or what is expected.
std::vector<oracle::Query> broadcast_queries(const std::vector<oracle::Query>& queries, comm::Comm& comm);

}  // namespace pal::dist
