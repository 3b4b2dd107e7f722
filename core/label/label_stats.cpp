#include "core/label/label_stats.h"

#include <algorithm>

#include "core/label/answer_service.h"
#include "core/oracle/ledger/answers_io.h"
#include "core/oracle/oracle.h"
#include "core/oracle/relation_count.h"

namespace pal::label {
namespace {

constexpr size_t kPoints = 40, kShown = 20, kExamples = 24;

// Inserts in parts, for the history.
void insert_with_history(graph::GraphStore& store, const std::vector<oracle::Decision>& decisions, int64_t before,
                         LabelStats& s) {
  std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>> asked;  // pair → query, member
  for (const oracle::Decision& d : decisions) asked[std::minmax(d.i, d.j)] = {d.query, d.j};
  const size_t part = std::max<size_t>(1, (decisions.size() + kPoints - 1) / kPoints);
  s.history.push_back({0, 0, store.components()});
  for (size_t at = 0; at < decisions.size(); at += part) {
    const std::vector<oracle::Decision> some(
        decisions.begin() + static_cast<ptrdiff_t>(at),
        decisions.begin() + static_cast<ptrdiff_t>(std::min(at + part, decisions.size())));
    for (const oracle::Contradiction& c : oracle::insert_answers(store, some).contradicted) {
      Dispute dispute{c.answer};
      for (const graph::Link& link : c.chain) {
        const auto found = asked.find(std::minmax(link.i, link.j));
        const bool by_answer = link.answer != graph::Link::kByLabels && found != asked.end();
        dispute.chain.push_back({link, by_answer ? found->second.first : 0, by_answer ? found->second.second : 0});
      }
      s.disputes.push_back(std::move(dispute));
    }
    s.history.push_back(
        {static_cast<int64_t>(at + some.size()), oracle::count_relations(store).known - before, store.components()});
  }
}

void find_disagreements(const std::vector<oracle::RecordedAnswer>& answers, LabelStats& s) {
  std::map<std::pair<int64_t, int64_t>, Disagreement> by_question;
  for (const oracle::RecordedAnswer& r : answers) {
    if (r.superseded_by != 0 || r.said == "withdrawn" || r.said == to_string(oracle::Verdict::skip)) continue;
    Disagreement& d = by_question[{-r.answer.query, r.answer.j}];  // newest first
    d.query = r.answer.query, d.i = r.answer.i, d.j = r.answer.j;
    d.said.emplace_back(r.answer.annotator, r.said);
  }
  for (const auto& [question, d] : by_question) {
    if (s.disagreements.size() == kShown) break;
    const bool differ =
        std::any_of(d.said.begin(), d.said.end(), [&](const auto& said) { return said.second != d.said[0].second; });
    if (differ) s.disagreements.push_back(d);
  }
}

void score_gold(const std::vector<oracle::RecordedAnswer>& answers, const std::vector<int64_t>& labels, LabelStats& s) {
  for (const oracle::RecordedAnswer& r : answers) {
    if (r.sampler != kGoldSampler || r.superseded_by != 0 || (r.said != "yes" && r.said != "no")) continue;
    const auto n = static_cast<int64_t>(labels.size());
    if (r.answer.i >= n || r.answer.j >= n || labels[r.answer.i] < 0 || labels[r.answer.j] < 0) continue;
    GoldScore& score = s.gold[r.answer.annotator];
    ++score.of;
    score.right += (r.said == "yes") == (labels[r.answer.i] == labels[r.answer.j]);
  }
}

}  // namespace

LabelStats label_stats(const oracle::Ledger& ledger, const graph::GraphStore& before, oracle::ConsensusKind consensus,
                       const std::vector<int64_t>& labels) {
  LabelStats s;
  const std::vector<oracle::Decision> decisions = oracle::standing_decisions(ledger, consensus);
  const std::vector<oracle::RecordedAnswer> answers = ledger.all_answers();
  s.samples = before.samples();
  s.questions = ledger.questions();
  s.open = ledger.open_questions();
  s.answered = static_cast<int64_t>(decisions.size());
  s.cost = ledger.cost();
  const auto store = std::make_shared<graph::GraphStore>(before);
  insert_with_history(*store, decisions, oracle::count_relations(before).known, s);
  s.known = s.history.back().known;
  s.components = store->components();
  for (const oracle::Decision& d : decisions) {
    s.answered_pairs += d.relation() != graph::Relation::unknown;
    s.no += d.verdict == oracle::Verdict::no;
    s.unsure += d.verdict == oracle::Verdict::unsure;
    s.broken += d.verdict == oracle::Verdict::broken;
  }
  s.answered_pairs -= static_cast<int64_t>(s.disputes.size());
  for (const oracle::RecordedAnswer& r : answers) {
    s.answers += r.said != "withdrawn" && r.superseded_by == 0;
    s.seconds += r.answer.seconds;
    s.timed += r.answer.seconds > 0;
  }
  s.agreement = oracle::annotator_report(answers);
  find_disagreements(answers, s);
  score_gold(answers, labels, s);
  for (int64_t i = 0; i < store->samples(); ++i) {
    if (store->component_size(i) < 2) continue;
    std::vector<int64_t>& some = s.examples[store->component(i)];
    if (some.size() < kExamples) some.push_back(i);
  }
  s.store = store;
  return s;
}

}  // namespace pal::label
