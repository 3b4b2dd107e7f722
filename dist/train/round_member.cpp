#include "dist/train/round_member.h"

#include <algorithm>
#include <set>

namespace pal::dist {
namespace {

constexpr size_t kSuspects = 3;  // links of a chain whose questions need one more answer

}  // namespace

void RoundMember::receive(RoundMessage message) {
  asked_ = message.asked;
  open_ = message.open;
  stop_ = message.stop;
  waiting_.insert(waiting_.end(), message.decisions.begin(), message.decisions.end());
}

oracle::Round RoundMember::next_round(int64_t round, int64_t questions) const {
  oracle::Round next{settings_.seed, round, questions};
  for (const oracle::Decision& d : waiting_) next.pending.push_back({d.query, oracle::QueryKind::pair, d.i, {d.j}});
  for (const auto& [question, known] : known_)
    oracle::add_decision(next, known.decision, known.inserted ? oracle::InGraph::yes : oracle::InGraph::no);
  return next;
}

std::vector<oracle::Contradiction> RoundMember::insert_due(int64_t step) {
  std::vector<oracle::Decision> due;
  while (due.size() < waiting_.size() && waiting_[due.size()].effective_step <= step)
    due.push_back(waiting_[due.size()]);
  if (due.empty()) return {};
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<int64_t>(due.size()));
  // The edges of replaced decisions are removed first, all at once.
  std::vector<SamplePair> replaced;
  std::vector<oracle::Decision> fresh;
  for (const oracle::Decision& d : due) {
    cost_ += d.cost;
    const auto [at, first] = known_.try_emplace({d.query, d.j}, Known{d, false});
    Known& known = at->second;
    questions_ += first;
    const bool kept = known.inserted && known.decision.relation() == d.relation();
    if (known.inserted && !kept) {
      replaced.emplace_back(d.i, d.j);
      known.inserted = false;
    }
    std::erase_if(left_out_, [&](const oracle::Decision& old) { return old.query == d.query && old.j == d.j; });
    known.decision = d;
    if (!kept && d.relation() != graph::Relation::unknown) fresh.push_back(d);
  }
  if (!replaced.empty()) {
    store_.remove(replaced);
    fresh.insert(fresh.begin(), left_out_.begin(), left_out_.end());
    left_out_.clear();
  }
  std::vector<oracle::Contradiction> against = oracle::insert_answers(store_, fresh).contradicted;
  for (const oracle::Decision& d : fresh) known_[{d.query, d.j}].inserted = true;
  for (const oracle::Contradiction& c : against) {
    known_[{c.answer.query, c.answer.j}].inserted = false;
    left_out_.push_back(c.answer);
  }
  contradictions_ += static_cast<int64_t>(against.size());
  add_contradicted(against);
  return against;
}

void RoundMember::add_contradicted(const std::vector<oracle::Contradiction>& against) {
  if (settings_.repeats == 0 || against.empty()) return;
  std::map<SamplePair, double> confidence;
  for (const auto& [question, known] : known_) confidence[pair_of(known.decision)] = known.decision.confidence;
  std::set<SamplePair> seen(contradicted_pairs_.begin(), contradicted_pairs_.end());
  const auto add = [&](const SamplePair& pair) {
    if (seen.insert(pair).second) contradicted_pairs_.push_back(pair);
  };
  for (const oracle::Contradiction& c : against) {
    add(pair_of(c.answer));
    std::vector<std::pair<double, SamplePair>> links;
    for (const graph::Link& link : c.chain) {
      const SamplePair pair = std::minmax(link.i, link.j);
      const auto at = confidence.find(pair);
      if (link.answer != graph::Link::kByLabels && at != confidence.end()) links.emplace_back(at->second, pair);
    }
    std::sort(links.begin(), links.end());
    for (size_t k = 0; k < std::min(kSuspects, links.size()); ++k) add(links[k].second);
  }
}

}  // namespace pal::dist
