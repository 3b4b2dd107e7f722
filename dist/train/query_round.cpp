#include "dist/train/query_round.h"

#include <fmt/format.h>

#include <utility>

#include "core/oracle/round/pool.h"
#include "core/oracle/samplers/samplers.h"
#include "dist/health/consistency.h"
#include "kernels/base/clock.h"

namespace pal::dist {

QueryRounds::QueryRounds(const oracle::OracleSpec& spec, World& world, graph::GraphStore& store,
                         const QuestionContext& context, const LedgerLocation& ledger, int64_t step)
    : comm_(world.control()),
      worker_comm_(world.oracle()),
      store_(store),
      context_(context),
      settings_(spec),
      sampler_(oracle::make_query_sampler(spec, context.parents)),
      member_(settings_, store) {
  if (comm_.rank() == 0) {
    leader_ = std::make_unique<RoundLeader>(settings_, context_, ledger, store);
    start_ = leader_->start(step);
  }
  start_ = broadcast_start(start_, settings_.questions_per_round, comm_);
  exits_now_ = start_.exits_now;
  member_.receive(std::exchange(start_.message, {}));
  insert_due(step - 1);
  member_.take_contradicted();  // the ledger holds the rounds that asked about them again
  check_same_graph(store_.fingerprint(), comm_);
}

QueryRounds::~QueryRounds() = default;

std::vector<std::string> QueryRounds::refused_at_start() {
  return leader_ ? leader_->take_refused() : std::vector<std::string>{};
}

void QueryRounds::at_boundary(int64_t step, const EmbedPool& embed) {
  const bool due = step > 0 && step % settings_.every == 0;
  warning_.clear();
  if (due) collect();
  insert_due(step);
  if (!due) return;
  check_same_graph(store_.fingerprint(), comm_);
  if (step / settings_.every >= start_.recorded_rounds) start_round(step, embed);
}

void QueryRounds::start_round(int64_t step, const EmbedPool& embed) {
  const bool stopped = member_.stop() != oracle::StopReason::none;
  if (stopped)
    warn_once("stop", "no more questions are asked: " + oracle::to_sentence(member_.stop(), settings_.limits));
  const int64_t most = settings_.questions_per_round - (start_.answered_later ? member_.open() : 0);
  const bool silent = sampler_->name() == "ssl";  // no question is expected
  if (most <= 0 && !stopped && !silent) {
    warn_once("full", fmt::format("no question is asked: {} questions are unanswered, and at most {} may be "
                                  "(oracle.questions_per_round)",
                                  member_.open(), settings_.questions_per_round));
  }
  const int64_t questions = stopped ? 0 : oracle::questions_left(settings_.limits, most, member_.asked());
  oracle::Round round = member_.next_round(step / settings_.every, questions);
  oracle::Pool pool;
  if (round.questions > 0) {
    const EmbedPool timed_embed = [&](const std::vector<int64_t>& samples, eval::SampleSlice slice) {
      const Clock::time_point start = Clock::now();
      at::Tensor rows = embed(samples, slice);
      times_.embed_ms = 1000 * seconds_since(start);
      return rows;
    };
    pool = oracle::make_pool(store_, *sampler_, round,
                             {settings_.pool, context_.samples, timed_embed, context_.inputs, &worker_comm_});
  }
  under_way_ = true;
  std::vector<SamplePair> contradicted = member_.take_contradicted();
  if (!leader_ && pool.comm == nullptr) return;  // rank 0 chooses alone
  preparing_ = std::async(std::launch::async, [this, pool = std::move(pool), round = std::move(round),
                                               contradicted = std::move(contradicted),
                                               step] { return prepare(pool, round, contradicted, step); });
}

// Runs in the worker thread of every rank that holds rows of the pool, and in rank 0's.
QueryRounds::Prepared QueryRounds::prepare(const oracle::Pool& pool, oracle::Round round,
                                           const std::vector<SamplePair>& contradicted, int64_t step) {
  Prepared out;
  if (leader_) leader_->begin(round, step);
  if (pool.comm != nullptr) round.pending = broadcast_queries(round.pending, *pool.comm);
  oracle::Chosen chosen;
  if (round.questions > 0) {
    const Clock::time_point start = Clock::now();
    chosen = oracle::choose_questions(*sampler_, store_, pool, round);
    oracle::predict_answers(store_, pool, chosen.queries);
    out.why = chosen.why;
    out.choose_ms = 1000 * seconds_since(start);
  }
  if (!leader_) return out;
  out.message = leader_->finish(chosen.queries, round, sampler_->name(), contradicted, step);
  out.refused = leader_->take_refused();
  return out;
}

void QueryRounds::collect() {
  if (!under_way_) return;
  under_way_ = false;
  const Clock::time_point start = Clock::now();
  const Prepared prepared = preparing_.valid() ? preparing_.get() : Prepared{};
  member_.receive(broadcast_round(prepared.message, settings_.questions_per_round, comm_));
  times_.wait_ms = 1000 * seconds_since(start);
  times_.choose_ms = prepared.choose_ms.value_or(times_.choose_ms);
  for (const std::string& sentence : prepared.refused) warn(sentence);
  // No warning where the answers take effect without help, and where the user chose a sampler that never asks.
  const bool expected = (prepared.why == oracle::NoQuestion::waiting && member_.open() == 0) ||
                        prepared.why == oracle::NoQuestion::silent;
  if (member_.stop() == oracle::StopReason::none && prepared.why != oracle::NoQuestion::none && !expected) {
    warn_once(std::to_string(static_cast<int>(prepared.why)),
              "no question is asked: " + oracle::to_sentence(prepared.why, *sampler_, member_.open(), settings_.pool));
  }
  exits_now_ = start_.exits && member_.open() > 0;
}

void QueryRounds::insert_due(int64_t step) {
  const std::vector<oracle::Contradiction> against = member_.insert_due(step);
  if (!against.empty()) warn(oracle::to_sentence(against));
}

int64_t QueryRounds::ledger_position() const {
  if (leader_ && preparing_.valid()) preparing_.wait();
  return member_.questions();
}

void QueryRounds::saw_figure(int64_t step, double value) {
  if (leader_) leader_->record_figure(step, value);
}

void QueryRounds::warn(const std::string& sentence) { warning_ += (warning_.empty() ? "" : "; ") + sentence; }

void QueryRounds::warn_once(const std::string& kind, const std::string& sentence) {
  if (warned_.insert(kind).second) warn(sentence);
}

}  // namespace pal::dist
