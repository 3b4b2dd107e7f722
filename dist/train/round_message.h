// round_message: what rank 0 broadcasts about the query rounds: their state when the run starts, the decisions of each
// round, and, while the ranks choose questions, the queries that are pending.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "core/comm/comm.h"
#include "core/oracle/ledger/question.h"
#include "core/oracle/stop_rules.h"

namespace pal::dist {

using SamplePair = std::pair<int64_t, int64_t>;  // smaller sample first

struct RoundMessage {
  int64_t asked = 0;  // questions in the ledger
  int64_t open = 0;   // of them, without enough answers
  oracle::StopReason stop = oracle::StopReason::none;
  std::vector<oracle::Decision> decisions = {};
};

// The state of the ledger when a run starts or resumes.
struct RoundStart {
  int64_t recorded_rounds = 0;  // rounds that the ledger already holds: they are not asked again
  bool answered_later = false;  // the labeler hands questions out and people answer them later
  bool exits = false;           // the run exits while questions are unanswered (oracle.wait=exit)
  bool exits_now = false;       // questions are unanswered, and no new decision was found
  RoundMessage message = {};    // every decision so far
};

// Collective. Rank 0's message, on every rank. The message has a fixed size when it holds at most `expected` decisions,
// so that one broadcast is enough; the head of a larger message announces a second broadcast.
RoundMessage broadcast_round(const RoundMessage& message, int64_t expected, comm::Comm& comm);

// Collective. Rank 0's start, on every rank.
RoundStart broadcast_start(const RoundStart& start, int64_t expected, comm::Comm& comm);

// Collective. Rank 0's queries, on every rank: kind, node, template and members, without sampler and prediction.
std::vector<oracle::Query> broadcast_queries(const std::vector<oracle::Query>& queries, comm::Comm& comm);

}  // namespace pal::dist
