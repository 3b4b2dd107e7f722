// question_queue: the open questions of the ledger, in memory, and which of them each person is shown next.
//
// A card is a query with at most `most` of its open members that this person has neither answered nor skipped. Several
// people are shown the same question only when several answers are wanted, and a person never sees the answers of
// others. A card is reserved for its person until it is answered or its lease ends: a reload shows it to that person
// again.
// Thread: any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/oracle/ledger/ledger.h"

namespace pal::label {

// Which person is shown which question now, so that two people do not answer the same question at the same time. In
// memory: after a restart of the server every question is free, which costs at most an answer given twice (the ledger
// keeps both).
// Thread: any.
class QuestionLeases {
 public:
  explicit QuestionLeases(double seconds = 300) : seconds_(seconds) {}

  // Whether `person` holds the query from `now` on (seconds of a monotonic clock): at most `people` hold it at a time.
  // Taking it again extends the lease.
  bool take(int64_t query, const std::string& person, double now, int64_t people = 1) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::map<std::string, double>& holders = leases_[query];
    std::erase_if(holders, [&](const auto& h) { return h.second <= now; });
    if (!holders.count(person) && static_cast<int64_t>(holders.size()) >= people) return false;
    holders[person] = now + seconds_;
    return true;
  }
  void release(int64_t query, const std::string& person) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = leases_.find(query);
    if (at == leases_.end()) return;
    at->second.erase(person);
    if (at->second.empty()) leases_.erase(at);
  }
  // The people who hold the query, by name.
  std::vector<std::string> holders(int64_t query, double now) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::string> names;
    const auto at = leases_.find(query);
    if (at == leases_.end()) return names;
    for (const auto& [person, until] : at->second) {
      if (until > now) names.push_back(person);
    }
    return names;
  }

 private:
  const double seconds_;
  mutable std::mutex mutex_;
  std::map<int64_t, std::map<std::string, double>> leases_;
};

class QuestionQueue {
 public:
  explicit QuestionQueue(int64_t most = 15, double lease_seconds = 300)
      : most_(static_cast<size_t>(most)), leases_(lease_seconds) {}

  // Replaces the open questions; leases stay.
  void load(std::vector<oracle::Ledger::Waiting> waiting);
  // Up to `count` cards for the person, in the order of the queries; `now` in seconds of a monotonic clock.
  std::vector<oracle::Query> next(const std::string& person, double now, int64_t count);
  // Recorded answers of one card.
  void answered(const std::string& person, int64_t query,
                const std::vector<std::pair<int64_t, oracle::Verdict>>& answers);

  int64_t open() const;  // queries with an open member
  // Whether this person could be shown `count` of them. Stops counting there.
  bool has(const std::string& person, int64_t count) const;

 private:
  static bool is_for(const oracle::Ledger::Waiting& w, size_t member, const std::string& person) {
    return w.wanted[member] > 0 && !w.answered_by[member].count(person);
  }
  oracle::Query card(const oracle::Ledger::Waiting& w,
                     const std::string& person) const;  // without members: nothing for this person

  const size_t most_;
  mutable std::mutex mutex_;
  std::map<int64_t, oracle::Ledger::Waiting> waiting_;  // by query
  QuestionLeases leases_;
};

}  // namespace pal::label
