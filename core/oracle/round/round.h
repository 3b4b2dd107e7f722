// round: one query round. Training (dist/train/query_round.h), `pal ask` and the labeling page (launch/run/ask_round.h)
// and the offline study (core/study/offline_study.h) run the same steps:
//
//   begin     reason_to_stop, then a Round: questions_left, pending queries, add_decision for closed pairs and coarse
//             decisions
//   pool      make_pool (pool.h): the samples, and what the sampler needs of them
//   choose    choose_questions, then predict_answers (choose_questions.h)
//   record    Ledger::record_queries
//   answer    take_in_answers, answer_open; without a ledger ask_annotators
//   decide    decide_open; without a ledger decide (core/oracle/ledger/consensus.h)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/oracle/ledger/consensus.h"
#include "core/oracle/ledger/inbox.h"
#include "core/oracle/ledger/ledger.h"
#include "core/oracle/oracle.h"
#include "core/oracle/oracle_spec.h"
#include "core/oracle/stop_rules.h"

namespace pal::oracle {

// The run that a ledger belongs to. Its questions depend on these values, not on ranks or threads.
std::string ledger_run(const OracleSpec& spec, uint64_t data_fingerprint);

// The rule that ends the questions now, by what the ledger holds. samples: those that may be asked about; empty: all.
StopReason reason_to_stop(const StopLimits& limits, const Ledger& ledger, const graph::GraphStore& store,
                          const std::vector<int64_t>& samples, int64_t step);

// How many of `most` questions the budget still allows after `asked` questions; not below 0.
int64_t questions_left(const StopLimits& limits, int64_t most, int64_t asked);

// Whether the graph holds the relation that a decision states.
enum class InGraph { no, yes };
// Adds the newest decision about a question to the round: a coarse decision is passed to the sampler; a pair whose
// decision is not in the graph is closed, unless all its answers were withdrawn.
void add_decision(Round& round, const Decision& decision, InGraph in_graph);

// Pairs that have enough answers and no decision yet, as queries: the graph does not know them before they are decided.
std::vector<Query> undecided_queries(const Ledger& ledger);

// Records the answers of the inbox and of the labeler. Adds a sentence to `refused` for each one that was refused.
void take_in_answers(Ledger& ledger, Inbox& inbox, Labeler& labeler, std::vector<std::string>& refused);

// Puts every open question to as many annotators as are wanted, if the labeler answers at once.
void answer_open(Ledger& ledger, const Labeler& labeler);

// Decides every question that has enough answers and records the decisions. Synced when it returns.
std::vector<Decision> decide_open(Ledger& ledger, ConsensusKind consensus, int64_t effective_step, int64_t round);

// Without a ledger: the members of the query, each with the answers of the first `votes` annotators.
std::vector<Question> ask_annotators(const Labeler& labeler, const Query& query, int64_t votes);

}  // namespace pal::oracle
