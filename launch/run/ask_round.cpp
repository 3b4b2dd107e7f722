#include "launch/run/ask_round.h"

#include <ATen/ops/tensor.h>

#include <algorithm>

#include "core/data/feature_set.h"
#include "core/data/loader/augment_config.h"
#include "core/eval/embed.h"
#include "core/record/checkpoint_folder.h"
#include "core/oracle/round/choose_questions.h"
#include "core/oracle/round/predicted_answers.h"
#include "core/setup/setup.h"
#include "kernels/base/error.h"
#include "launch/run/trained_run.h"

namespace pal {
namespace {

at::Tensor inputs_of(const RunGraph& graph, const std::vector<int64_t>& samples) {
  const std::string& train = graph.config.text("data.train");
  if (is_feature_file(train)) return read_features(train).rows.index_select(0, at::tensor(samples));
  return pixels(*graph.data, samples);
}

Pool make_pool(const std::string& run, const RunGraph& graph, const QuerySampler& sampler, const AskOptions& ask, const Round& round, Comm& comm) {
  const Config& config = graph.config;
  Pool pool;
  pool.samples = draw_pool(graph.store, config.integer("oracle.pool"), round.seed, round.round, graph.subset, sampler.begun());
  PAL_DATA_CHECK(!pool.samples.empty(), "samples to choose questions from", 0, "the data set is empty");
  if (sampler.needs() == PoolNeeds::samples) return pool;
  if (ask.untrained == Untrained::by_inputs && checkpoint_steps(run).empty()) {
    pool.embeddings = inputs_of(graph, pool.samples);
  } else {
    const Trained trained = load_trained(run, config, comm);
    EmbedOptions options;
    options.what = EmbedWhat::embedding;
    options.augment = augment_options(config, *graph.data);
    options.dtype = scalar_type(config);
    options.threads = ask.threads;
    pool.embeddings = embed(*trained.encoder, *graph.data, pool.samples, options, comm);
  }
  if (sampler.needs() == PoolNeeds::inputs) pool.inputs = pixels(*graph.data, pool.samples);
  return pool;
}

}  // namespace

AskedRound ask_round(const std::string& run, const RunGraph& graph, const QuerySampler& sampler, Ledger& ledger, const AskOptions& options, Comm& comm) {
  const Config& config = graph.config;
  const std::vector<int64_t> steps = checkpoint_steps(run);
  AskedRound asked;
  asked.step = steps.empty() ? 0 : steps.front();
  const StopLimits limits = stop_limits(config);
  if (const StopReason stop = reason_to_stop(limits, ledger, graph.store, graph.subset, asked.step); stop != StopReason::none) {
    asked.why = to_sentence(stop, limits);
    return asked;
  }
  int64_t most = options.questions;
  if (limits.questions > 0) most = std::min(most, limits.questions - ledger.questions());
  const int64_t every = config.integer("oracle.every");
  Round round{static_cast<uint64_t>(config.integer("train.seed")), std::max({ledger.rounds(), (asked.step + every - 1) / every, int64_t{1}}), most};
  round.pending = ledger.open_queries();
  for (const Decision& d : graph.decisions) {
    if (d.kind == QueryKind::coarse) round.coarse.push_back(d);
    else if (graph.store.relation(d.i, d.j) != d.relation() || d.relation() == Relation::unknown) round.closed.emplace_back(d.i, d.j);
  }
  const Pool pool = make_pool(run, graph, sampler, options, round, comm);
  Chosen chosen = choose_questions(sampler, graph.store, pool, round);
  asked.queries = std::move(chosen.queries);
  asked.why = to_sentence(chosen.why, sampler, ledger.open_questions(), static_cast<int64_t>(pool.samples.size()));
  asked.waits = chosen.why == NoQuestion::waiting;
  expect_answers(graph.store, pool, asked.queries);
  ledger.record_queries(asked.queries, {sampler.name(), round.round, asked.step, config.integer("oracle.votes")});
  return asked;
}

}  // namespace pal
