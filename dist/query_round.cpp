#include "dist/query_round.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <bit>

#include "core/config/config.h"
#include "kernels/base/error.h"

namespace pal {
namespace {

constexpr int64_t kHead = 2;         // queries, answers
constexpr int64_t kQueryWords = 4;   // id, kind, template, members; then the members
constexpr int64_t kAnswerWords = 6;

void append(std::vector<int64_t>& words, const Decision& a) {
  words.insert(words.end(), {a.query, a.i, a.j, static_cast<int64_t>(a.verdict), a.effective_step, std::bit_cast<int64_t>(a.cost)});
}

Decision answer_at(const int64_t* w) {
  return {w[0], w[1], w[2], QueryKind::pair, kNoNode, static_cast<Verdict>(w[3]), w[4], std::bit_cast<double>(w[5])};
}

// Answers of any number, from rank 0 to all: the size first. Used once, at the start.
std::vector<Decision> broadcast_answers(const std::vector<Decision>& answers, Comm& comm) {
  at::Tensor count = at::zeros({1}, at::kLong);
  count.data_ptr<int64_t>()[0] = static_cast<int64_t>(answers.size());
  comm.broadcast(count, 0);
  std::vector<int64_t> words;
  for (const Decision& a : answers) append(words, a);
  at::Tensor buffer = at::zeros({count.data_ptr<int64_t>()[0] * kAnswerWords}, at::kLong);
  std::copy(words.begin(), words.end(), buffer.data_ptr<int64_t>());
  comm.broadcast(buffer, 0);
  std::vector<Decision> all;
  for (int64_t at = 0; at < buffer.numel(); at += kAnswerWords) all.push_back(answer_at(buffer.data_ptr<int64_t>() + at));
  return all;
}

}  // namespace

at::Tensor encode_round(const RoundMessage& message, int64_t questions) {
  std::vector<int64_t> words = {static_cast<int64_t>(message.queries.size()), static_cast<int64_t>(message.answers.size())};
  for (const Query& q : message.queries) {
    words.insert(words.end(), {q.id, static_cast<int64_t>(q.kind), q.template_sample, static_cast<int64_t>(q.members.size())});
    words.insert(words.end(), q.members.begin(), q.members.end());
  }
  for (const Decision& a : message.answers) append(words, a);
  at::Tensor buffer = at::zeros({kHead + questions * (kQueryWords + 1 + kAnswerWords)}, at::kLong);
  PAL_ASSERT(static_cast<int64_t>(words.size()) <= buffer.numel(), "a round has at most oracle.questions_per_round questions");
  std::copy(words.begin(), words.end(), buffer.data_ptr<int64_t>());
  return buffer;
}

RoundMessage decode_round(const at::Tensor& buffer) {
  RoundMessage message;
  const int64_t* w = buffer.data_ptr<int64_t>();
  const int64_t queries = w[0], answers = w[1];
  w += kHead;
  for (int64_t k = 0; k < queries; ++k) {
    Query q{w[0], static_cast<QueryKind>(w[1]), w[2], std::vector<int64_t>(w + kQueryWords, w + kQueryWords + w[3])};
    w += kQueryWords + q.members.size();
    message.queries.push_back(std::move(q));
  }
  for (int64_t k = 0; k < answers; ++k, w += kAnswerWords) message.answers.push_back(answer_at(w));
  return message;
}

QueryRounds::QueryRounds(const Config& config, Comm& comm, GraphStore& store, const AskedOf& of, const LedgerOf& ledger, int64_t step)
    : comm_(comm),
      store_(store),
      trained_(of.samples),
      seed_(static_cast<uint64_t>(config.integer("train.seed"))),
      every_(config.integer("oracle.every")),
      per_round_(config.integer("oracle.questions_per_round")),
      pool_(config.integer("oracle.pool")),
      budget_(config.integer("oracle.budget")),
      sampler_(make_query_sampler(config)) {
  std::vector<Decision> known;
  if (comm_.rank() == 0) {
    labeler_ = make_labeler(config, LabelerOf{of.labels});
    ledger_ = std::make_unique<Ledger>(ledger.path, ledger.run_id);
    recorded_rounds_ = ledger_->rounds();
    // A run killed between a question and its answer: the answer is given now, for the step it would have had.
    for (const Query& q : ledger_->open_queries()) {
      std::vector<Decision> late = as_decisions(q, labeler_->answer(q));
      for (Decision& a : late) a.effective_step = recorded_rounds_ * every_;
      ledger_->record_answers(late, labeler_->name());
    }
    known = ledger_->answers();
  }
  at::Tensor rounds = at::zeros({1}, at::kLong);
  rounds.data_ptr<int64_t>()[0] = recorded_rounds_;
  comm_.broadcast(rounds, 0);
  recorded_rounds_ = rounds.data_ptr<int64_t>()[0];
  waiting_ = broadcast_answers(known, comm_);
  insert_due(step - 1);
  compare_graphs();
}

void QueryRounds::at_boundary(int64_t step, const EmbedPool& embed) {
  const bool due = step > 0 && step % every_ == 0;
  if (due) collect();
  insert_due(step);
  if (!due) return;
  compare_graphs();
  if (step / every_ >= recorded_rounds_) ask(step, embed);
}

void QueryRounds::ask(int64_t step, const EmbedPool& embed) {
  const int64_t left = budget_ == 0 ? per_round_ : std::min(per_round_, budget_ - questions_);
  if (left <= 0) return;
  Round round{seed_, step / every_, left, {}};
  for (const Decision& a : waiting_) round.pending.push_back({a.query, QueryKind::pair, a.i, {a.j}});
  Pool pool{draw_pool(store_, pool_, seed_, round.round, trained_), {}};
  if (sampler_->needs() == PoolNeeds::embeddings) pool.embeddings = embed(pool.samples);
  asked_ = true;
  if (comm_.rank() == 0) {
    preparing_ = std::async(std::launch::async, [this, pool = std::move(pool), round = std::move(round), step] { return prepare(pool, round, step); });
  }
}

// Of the thread.
RoundMessage QueryRounds::prepare(const Pool& pool, const Round& round, int64_t step) {
  RoundMessage message;
  message.queries = sampler_->choose(store_, pool, round);
  ledger_->record_queries(message.queries, {sampler_->name(), round.round, step});
  for (const Query& q : message.queries) {
    for (Decision a : as_decisions(q, labeler_->answer(q))) {
      a.effective_step = step + every_;
      message.answers.push_back(a);
    }
  }
  ledger_->record_answers(message.answers, labeler_->name());
  return message;
}

void QueryRounds::collect() {
  if (!asked_) return;
  asked_ = false;
  at::Tensor buffer = encode_round(comm_.rank() == 0 ? preparing_.get() : RoundMessage{}, per_round_);
  comm_.broadcast(buffer, 0);
  const RoundMessage message = decode_round(buffer);
  waiting_.insert(waiting_.end(), message.answers.begin(), message.answers.end());
}

void QueryRounds::settle() {
  if (preparing_.valid()) preparing_.wait();
}

void QueryRounds::insert_due(int64_t step) {
  std::vector<Decision> due;
  size_t k = 0;
  while (k < waiting_.size() && waiting_[k].effective_step <= step) due.push_back(waiting_[k++]);
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<int64_t>(k));
  const std::vector<Contradiction> against = insert_answers(store_, due).contradicted;
  contradictions_ += static_cast<int64_t>(against.size());
  warning_ = to_sentence(against);
  for (const Decision& a : due) {
    questions_ += 1;
    cost_ += a.cost;
  }
}

void QueryRounds::compare_graphs() {
  const auto fingerprint = static_cast<int64_t>(store_.fingerprint());
  at::Tensor low = at::full({1}, fingerprint, at::kLong), high = low.clone();
  comm_.all_reduce(low, ReduceOp::min);
  comm_.all_reduce(high, ReduceOp::max);
  PAL_ASSERT(low.data_ptr<int64_t>()[0] == high.data_ptr<int64_t>()[0], "every rank holds the same graph");
}

}  // namespace pal
