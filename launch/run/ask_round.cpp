#include "launch/run/ask_round.h"

#include <algorithm>

#include "core/data/loader/augment_spec.h"
#include "core/eval/embed.h"
#include "core/oracle/round/choose_questions.h"
#include "core/oracle/round/pool.h"
#include "core/oracle/round/round.h"
#include "core/record/checkpoint_folder.h"
#include "kernels/base/error.h"
#include "launch/run/trained_run.h"

namespace pal::launch {
namespace {

// The newest checkpoint embeds the pool; before there is one, the samples themselves are used if the caller allows it.
at::Tensor embed_pool(const std::string& run, const RunGraph& graph, const std::vector<int64_t>& samples,
                      const AskOptions& ask, comm::Comm& comm) {
  if (ask.untrained == Untrained::by_inputs && record::checkpoint_steps(run).empty())
    return eval::inputs(*graph.data, samples, graph.spec.augment, ask.threads);
  const TrainedRun trained = load_trained_run(run, graph.spec, comm, ask.device);
  eval::EmbedOptions options;
  options.what = eval::EmbedWhat::embedding;
  options.augment = data::augment_options(graph.spec.augment, *graph.data);
  options.dtype = graph.spec.train.dtype;
  options.threads = ask.threads;
  if (ask.progress) options.progress = [&](int64_t done) { ask.progress(done, static_cast<int64_t>(samples.size())); };
  return eval::embed(*trained.encoder, *graph.data, samples, options, comm);
}

}  // namespace

AskedRound ask_round(const std::string& run, const RunGraph& graph, const oracle::QuerySampler& sampler,
                     oracle::Ledger& ledger, const AskOptions& options, comm::Comm& comm) {
  const oracle::OracleSpec& settings = graph.spec.oracle;
  const std::vector<int64_t> steps = record::checkpoint_steps(run);
  AskedRound asked;
  asked.step = steps.empty() ? 0 : steps.front();
  if (const oracle::StopReason stop =
          oracle::reason_to_stop(settings.limits, ledger, graph.store, graph.subset, asked.step);
      stop != oracle::StopReason::none) {
    asked.why = oracle::to_sentence(stop, settings.limits);
    return asked;
  }
  PAL_DATA_CHECK(graph.data->size() > 0, "samples to choose questions from", 0, "the data set is empty");
  oracle::Round round{settings.seed,
                      std::max({ledger.rounds(), (asked.step + settings.every - 1) / settings.every, int64_t{1}}),
                      oracle::questions_left(settings.limits, options.questions, ledger.questions())};
  round.pending = ledger.open_queries();
  for (const oracle::Decision& d : graph.decisions) {
    const bool in_graph = d.relation() != graph::Relation::unknown && graph.store.relation(d.i, d.j) == d.relation();
    oracle::add_decision(round, d, in_graph ? oracle::InGraph::yes : oracle::InGraph::no);
  }
  const oracle::Pool pool =
      oracle::make_pool(graph.store, sampler, round,
                        {settings.pool, graph.subset,
                         [&](const std::vector<int64_t>& samples, eval::SampleSlice) {
                           return embed_pool(run, graph, samples, options, comm);
                         },
                         [&](const std::vector<int64_t>& samples) {
                           return eval::inputs(*graph.data, samples, graph.spec.augment, options.threads);
                         }});
  oracle::Chosen chosen = oracle::choose_questions(sampler, graph.store, pool, round);
  oracle::predict_answers(graph.store, pool, chosen.queries);
  asked.queries = std::move(chosen.queries);
  asked.why =
      oracle::to_sentence(chosen.why, sampler, ledger.open_questions(), static_cast<int64_t>(pool.samples.size()));
  asked.waits = chosen.why == oracle::NoQuestion::waiting;
  ledger.record_queries(asked.queries, {sampler.name(), round.round, asked.step, settings.votes});
  return asked;
}

}  // namespace pal::launch
