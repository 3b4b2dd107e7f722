// run_graph: the graph of a run now: its labels and the decisions about the answers in its ledger.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/graph/store.h"
#include "core/oracle/ledger/ledger.h"
#include "core/setup/run_spec.h"

namespace pal::launch {

struct RunGraph {
  setup::RunSpec spec;
  std::shared_ptr<data::Dataset> data;
  std::vector<int64_t> subset;  // trained on
  graph::GraphStore store;
  std::vector<oracle::Decision> decisions = {};  // newest ones, also about answers that no job has read yet
  int64_t contradictions = 0;                    // of them, left out
};

// `overrides`: key=value of the sections oracle and label, instead of the run's own.
RunGraph open_run_graph(const std::string& run, const std::vector<std::string>& overrides = {});
// Inserts the decisions about the ledger's answers into the store.
void insert_ledger(RunGraph& graph, const oracle::Ledger& ledger);

}  // namespace pal::launch
