#include "core/oracle/round/round.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace pal::oracle {
namespace {

double hours_since(double seconds) {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return seconds == 0 ? 0 : (now - seconds) / 3600;
}

}  // namespace

std::string ledger_run(const OracleSpec& spec, uint64_t data_fingerprint) {
  return fmt::format("data={:016x} seed={} sampler={}", data_fingerprint, spec.seed, spec.sampler);
}

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

int64_t questions_left(const StopLimits& limits, int64_t most, int64_t asked) {
  const int64_t left = limits.questions > 0 ? std::min(most, limits.questions - asked) : most;
  return std::max<int64_t>(left, 0);
}

void add_decision(Round& round, const Decision& decision, InGraph in_graph) {
  if (decision.kind == QueryKind::coarse) {
    round.coarse.push_back(decision);
  } else if (in_graph == InGraph::no && decision.verdict != Verdict::skip) {
    round.closed.emplace_back(decision.i, decision.j);
  }
}

std::vector<Query> undecided_queries(const Ledger& ledger) {
  std::vector<Query> queries;
  for (const Question& q : ledger.to_decide()) queries.push_back({q.query, QueryKind::pair, q.i, {q.j}});
  return queries;
}

void take_in_answers(Ledger& ledger, Inbox& inbox, Labeler& labeler, std::vector<std::string>& refused) {
  inbox.drain(ledger, refused);
  for (const std::string& sentence : ledger.take(labeler.collect(refused)).refused) {
    if (!sentence.empty()) refused.push_back(sentence);
  }
}

void answer_open(Ledger& ledger, const Labeler& labeler) {
  if (labeler.answering() == Answering::later) return;
  for (bool more = true; more;) {
    std::vector<Answer> answers;
    for (const Ledger::Open& open : ledger.open()) {
      for (Answer& a : labeler.answer(open.query, open.votes)) answers.push_back(std::move(a));
    }
    more = ledger.record_answers(answers) > 0;
  }
}

std::vector<Decision> decide_open(Ledger& ledger, ConsensusKind consensus, int64_t effective_step, int64_t round) {
  const std::vector<Question> questions = ledger.to_decide();
  const std::vector<Question> all = consensus == ConsensusKind::dawid_skene && !questions.empty()
                                        ? ledger.questions_with_answers()
                                        : std::vector<Question>{};
  std::vector<Decision> decisions = decide(questions, consensus, all, effective_step);
  ledger.record_decisions(decisions, questions, round);
  return decisions;
}

std::vector<Question> ask_annotators(const Labeler& labeler, const Query& query, int64_t votes) {
  std::vector<Question> questions;
  for (int64_t member : query.members)
    questions.push_back({query.id, query.template_sample, member, query.kind, query.node});
  for (int64_t vote = 0; vote < votes; ++vote) {
    std::vector<Answer> answers = labeler.answer(query, vote);
    for (size_t k = 0; k < answers.size(); ++k) {
      questions[k].cost += answers[k].cost;
      questions[k].answers.push_back(std::move(answers[k]));
    }
  }
  return questions;
}

}  // namespace pal::oracle
