// ask_round: a round of questions by the newest checkpoint of a run, on this machine, into its ledger.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/comm/comm.h"
#include "core/oracle/oracle.h"
#include "launch/run/run_graph.h"

namespace pal::launch {

// Before there is a checkpoint: refuse, or choose by the samples themselves (features, pixels).
enum class Untrained { refused, by_inputs };

struct AskOptions {
  int64_t questions = 100;  // at most
  Untrained untrained = Untrained::refused;
  int threads = 1;
  at::Device device = at::kCPU;                                    // that embeds the pool
  std::function<void(int64_t done, int64_t total)> progress = {};  // samples of the pool that are embedded
};
struct AskedRound {
  std::vector<oracle::Query> queries = {};
  int64_t step = 0;      // of the checkpoint
  std::string why = {};  // without a question: a sentence
  bool waits = false;    // every remaining question has been asked: answers allow the next ones
};

// `graph` holds the decisions of the ledger (insert_ledger). The run's stop rules and budget apply. Synced when it
// returns.
AskedRound ask_round(const std::string& run, const RunGraph& graph, const oracle::QuerySampler& sampler,
                     oracle::Ledger& ledger, const AskOptions& options, comm::Comm& comm);

}  // namespace pal::launch
