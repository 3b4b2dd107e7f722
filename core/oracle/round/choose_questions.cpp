#include "core/oracle/round/choose_questions.h"

#include <algorithm>
#include <chrono>
#include <set>

namespace pal::oracle {
namespace {

double hours_since(double seconds) {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return seconds == 0 ? 0 : (now - seconds) / 3600;
}

void drop_closed(std::vector<Query>& queries, const std::vector<std::pair<int64_t, int64_t>>& closed) {
  std::set<std::pair<int64_t, int64_t>> pairs;
  for (const auto& [i, j] : closed) pairs.insert(std::minmax(i, j));
  for (Query& q : queries) {
    if (q.kind == QueryKind::coarse) continue;
    std::erase_if(q.members, [&](int64_t m) { return pairs.count(std::minmax(q.template_sample, m)) > 0; });
  }
  std::erase_if(queries, [](const Query& q) { return q.members.empty(); });
}

// Nothing is asked twice, whatever the sampler thinks of a pair about which nothing can be known.
Chosen choose_open(const QuerySampler& sampler, const graph::GraphStore& store, const Pool& pool, Round round) {
  Chosen out{sampler.choose(store, pool, round)};
  if (out.queries.empty()) return {{}, NoQuestion::pool};
  drop_closed(out.queries, round.closed);
  if (!out.queries.empty()) return out;
  // It sees nothing but closed pairs: the samples of these are left alone in this round.
  for (const auto& [i, j] : round.closed) round.pending.push_back({0, QueryKind::pair, i, {j}});
  out.queries = sampler.choose(store, pool, round);
  drop_closed(out.queries, round.closed);
  out.why = out.queries.empty() ? NoQuestion::closed : NoQuestion::none;
  return out;
}

}  // namespace

StopReason reason_to_stop(const StopLimits& limits, const Ledger& ledger, const graph::GraphStore& store,
                          const std::vector<int64_t>& samples, int64_t step) {
  StopState state;
  state.questions = ledger.questions();
  state.cost = ledger.cost();
  state.hours = hours_since(ledger.first_asked());
  state.closure = closure_reached(store, samples);
  if (limits.plateau > 0) state.figures = ledger.figures(step);
  if (limits.agreement > 0) state.agreements = ledger.agreements();
  return stop_reason(limits, state);
}

Chosen choose_questions(const QuerySampler& sampler, const graph::GraphStore& store, const Pool& pool,
                        const Round& round) {
  if (pool.samples.empty()) return {{}, NoQuestion::empty};
  Chosen out = choose_open(sampler, store, pool, round);
  if (!out.queries.empty()) return out;
  if (sampler.name() == "ssl") return {{}, NoQuestion::silent};
  if (round.pending.empty()) return out;
  Round alone = round;  // as if nothing were out
  alone.pending.clear();
  if (!choose_open(sampler, store, pool, alone).queries.empty()) out.why = NoQuestion::waiting;
  return out;
}

std::string to_sentence(NoQuestion why, const QuerySampler& sampler, int64_t open, int64_t pool) {
  switch (why) {
    case NoQuestion::none:
      return "";
    case NoQuestion::silent:
      return "the sampler " + sampler.name() + " never asks (oracle.sampler)";
    case NoQuestion::empty:
      return "there is no sample to ask about";
    case NoQuestion::waiting:
      return open > 0 ? "every question that is left is out: " + std::to_string(open) + " wait for an answer"
                      : "every question that is left is answered and takes effect in the next round";
    case NoQuestion::closed:
      return "all that is left was answered before, and nothing can be known of it: unsure, broken, or against what is "
             "known (pal answers show)";
    case NoQuestion::pool:
      return "the sampler " + sampler.name() + " finds nothing to ask among the " + std::to_string(pool) +
             " samples of this round; the next round draws others (oracle.pool)";
  }
  return "";
}

}  // namespace pal::oracle
