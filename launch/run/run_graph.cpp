#include "launch/run/run_graph.h"

#include <algorithm>

#include "core/oracle/ledger/answers_io.h"
#include "core/oracle/oracle.h"
#include "core/oracle/samplers/samplers.h"
#include "core/setup/setup.h"
#include "kernels/base/error.h"
#include "launch/run/trained_run.h"

namespace pal::launch {

RunGraph open_run_graph(const std::string& run, const std::vector<std::string>& overrides) {
  config::Config config = run_config(run);
  for (const std::string& o : overrides)
    PAL_CHECK(o.starts_with("oracle.") || o.starts_with("label."), "this setting of a run cannot be changed", o,
              "give keys of the sections oracle and label");
  if (!overrides.empty()) {
    std::vector<std::string> all = overrides;
    if (std::none_of(all.begin(), all.end(), [](const std::string& o) { return o.starts_with("oracle.labeler="); }))
      all.push_back("oracle.labeler=exchange");  // the questions of these commands are for people
    config = config::Config::load(run + "/config.yaml", all);
  }
  setup::RunSpec spec = setup::make_run_spec(config);
  std::shared_ptr<data::Dataset> data = data::Dataset::open(spec.data.train);
  std::vector<int64_t> subset = setup::training_subset(spec, *data);
  const std::vector<int64_t> labels = setup::known_labels(spec, *data, subset);
  spec.oracle.templates = oracle::decided_templates(
      spec.oracle, std::count_if(labels.begin(), labels.end(), [](int64_t label) { return label >= 0; }));
  graph::GraphStore store =
      setup::make_graph_store(spec.graph, *data, labels, setup::known_groups(spec, *data, subset));
  return {std::move(spec), std::move(data), std::move(subset), std::move(store)};
}

void insert_ledger(RunGraph& graph, const oracle::Ledger& ledger) {
  graph.decisions = oracle::standing_decisions(ledger, graph.spec.oracle.consensus);
  graph.contradictions = static_cast<int64_t>(oracle::insert_answers(graph.store, graph.decisions).contradicted.size());
}

}  // namespace pal::launch
