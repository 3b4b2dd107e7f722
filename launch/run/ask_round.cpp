#include "launch/run/ask_round.h"

#include <ATen/ops/tensor.h>

#include <algorithm>

#include "core/data/feature_set.h"
#include "core/data/loader/augment_spec.h"
#include "core/eval/embed.h"
#include "core/oracle/round/choose_questions.h"
#include "core/oracle/round/predicted_answers.h"
#include "core/record/checkpoint_folder.h"
#include "kernels/base/error.h"
#include "launch/run/trained_run.h"

namespace pal::launch {
namespace {

at::Tensor inputs_of(const RunGraph& graph, const std::vector<int64_t>& samples) {
  const std::string& train = graph.spec.data.train;
  if (data::is_feature_file(train)) return data::read_features(train).rows.index_select(0, at::tensor(samples));
  return eval::pixels(*graph.data, samples);
}

oracle::Pool make_pool(const std::string& run, const RunGraph& graph, const oracle::QuerySampler& sampler,
                       const AskOptions& ask, const oracle::Round& round, comm::Comm& comm) {
  const setup::RunSpec& spec = graph.spec;
  oracle::Pool pool;
  pool.samples =
      oracle::draw_pool(graph.store, spec.oracle.pool, round.seed, round.round, graph.subset, sampler.refused_order());
  PAL_DATA_CHECK(!pool.samples.empty(), "samples to choose questions from", 0, "the data set is empty");
  if (sampler.needs() == oracle::PoolNeeds::samples) return pool;
  if (ask.untrained == Untrained::by_inputs && record::checkpoint_steps(run).empty()) {
    pool.embeddings = inputs_of(graph, pool.samples);
  } else {
    const TrainedRun trained = load_trained_run(run, spec, comm);
    eval::EmbedOptions options;
    options.what = eval::EmbedWhat::embedding;
    options.augment = data::augment_options(spec.augment, *graph.data);
    options.dtype = spec.train.dtype;
    options.threads = ask.threads;
    pool.embeddings = eval::embed(*trained.encoder, *graph.data, pool.samples, options, comm);
  }
  if (sampler.needs() == oracle::PoolNeeds::inputs) pool.inputs = eval::pixels(*graph.data, pool.samples);
  return pool;
}

}  // namespace

AskedRound ask_round(const std::string& run, const RunGraph& graph, const oracle::QuerySampler& sampler,
                     oracle::Ledger& ledger, const AskOptions& options, comm::Comm& comm) {
  const setup::RunSpec& spec = graph.spec;
  const std::vector<int64_t> steps = record::checkpoint_steps(run);
  AskedRound asked;
  asked.step = steps.empty() ? 0 : steps.front();
  const oracle::StopLimits limits = spec.oracle.limits;
  if (const oracle::StopReason stop = oracle::reason_to_stop(limits, ledger, graph.store, graph.subset, asked.step);
      stop != oracle::StopReason::none) {
    asked.why = oracle::to_sentence(stop, limits);
    return asked;
  }
  int64_t most = options.questions;
  if (limits.questions > 0) most = std::min(most, limits.questions - ledger.questions());
  const int64_t every = spec.oracle.every;
  oracle::Round round{spec.oracle.seed, std::max({ledger.rounds(), (asked.step + every - 1) / every, int64_t{1}}),
                      most};
  round.pending = ledger.open_queries();
  for (const oracle::Decision& d : graph.decisions) {
    if (d.kind == oracle::QueryKind::coarse)
      round.coarse.push_back(d);
    else if (graph.store.relation(d.i, d.j) != d.relation() || d.relation() == graph::Relation::unknown)
      round.closed.emplace_back(d.i, d.j);
  }
  const oracle::Pool pool = make_pool(run, graph, sampler, options, round, comm);
  oracle::Chosen chosen = oracle::choose_questions(sampler, graph.store, pool, round);
  asked.queries = std::move(chosen.queries);
  asked.why =
      oracle::to_sentence(chosen.why, sampler, ledger.open_questions(), static_cast<int64_t>(pool.samples.size()));
  asked.waits = chosen.why == oracle::NoQuestion::waiting;
  oracle::predict_answers(graph.store, pool, asked.queries);
  ledger.record_queries(asked.queries, {sampler.name(), round.round, asked.step, spec.oracle.votes});
  return asked;
}

}  // namespace pal::launch
