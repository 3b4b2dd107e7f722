#include "core/label/question_queue.h"

#include <algorithm>

namespace pal::label {

void QuestionQueue::load(std::vector<oracle::Ledger::Waiting> waiting) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.clear();
  for (oracle::Ledger::Waiting& w : waiting) {
    if (std::all_of(w.wanted.begin(), w.wanted.end(), [](int64_t wanted) { return wanted <= 0; })) continue;
    const int64_t id = w.query.id;
    waiting_.emplace_hint(waiting_.end(), id, std::move(w));
  }
}

oracle::Query QuestionQueue::card(const oracle::Ledger::Waiting& w, const std::string& person) const {
  oracle::Query card{w.query.id, w.query.kind, w.query.template_sample, {}, w.query.node, w.query.sampler};
  for (size_t k = 0; k < w.query.members.size() && card.members.size() < most_; ++k) {
    if (is_for(w, k, person)) card.members.push_back(w.query.members[k]);
  }
  return card;
}

std::vector<oracle::Query> QuestionQueue::next(const std::string& person, double now, int64_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<oracle::Query> cards;
  for (const auto& [id, w] : waiting_) {
    if (static_cast<int64_t>(cards.size()) >= count) break;
    oracle::Query shown = card(w, person);
    if (shown.members.empty()) continue;
    const int64_t people = *std::max_element(w.wanted.begin(), w.wanted.end());
    if (leases_.take(id, person, now, people)) cards.push_back(std::move(shown));
  }
  return cards;
}

void QuestionQueue::answered(const std::string& person, int64_t query,
                             const std::vector<std::pair<int64_t, oracle::Verdict>>& answers) {
  const std::lock_guard<std::mutex> lock(mutex_);
  leases_.release(query, person);
  const auto at = waiting_.find(query);
  if (at == waiting_.end()) return;
  oracle::Ledger::Waiting& w = at->second;
  for (size_t k = 0; k < w.query.members.size(); ++k) {
    for (const auto& [member, verdict] : answers) {
      if (member != w.query.members[k] || !w.answered_by[k].insert(person).second) continue;
      if (verdict != oracle::Verdict::skip) --w.wanted[k];
    }
  }
  if (std::all_of(w.wanted.begin(), w.wanted.end(), [](int64_t wanted) { return wanted <= 0; })) waiting_.erase(at);
}

int64_t QuestionQueue::open() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(waiting_.size());
}

bool QuestionQueue::has(const std::string& person, int64_t count) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [id, w] : waiting_) {
    if (count <= 0) break;
    for (size_t k = 0; k < w.wanted.size(); ++k) {
      if (!is_for(w, k, person)) continue;
      --count;
      break;
    }
  }
  return count <= 0;
}

}  // namespace pal::label
