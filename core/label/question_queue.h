// question_queue: which open question each person is shown next. In memory, of what the ledger says is open.
//
// A card is a query with at most `most` of its open members that this person has neither answered nor skipped. Several
// people are shown the same question only when several answers are wanted, and none sees what another said.
// A card stays with its person until it is answered or its lease ends: a reload shows it again, to nobody else.
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/oracle/ledger/ledger.h"
#include "core/oracle/ledger/question_leases.h"

namespace pal::label {

class QuestionQueue {
 public:
  explicit QuestionQueue(int64_t most = 15, double lease_seconds = 300)
      : most_(static_cast<size_t>(most)), leases_(lease_seconds) {}

  // What is open now, in place of what was; who holds what stays.
  void load(std::vector<oracle::Ledger::Waiting> waiting);
  // Up to `count` cards for the person, in the order of the queries; `now` in seconds of a clock that does not go back.
  std::vector<oracle::Query> next(const std::string& person, double now, int64_t count);
  // Recorded answers of one card.
  void answered(const std::string& person, int64_t query,
                const std::vector<std::pair<int64_t, oracle::Verdict>>& answers);

  int64_t open() const;  // queries that somebody could still be shown
  // Whether this person could be shown `count` of them. Looks no further than that.
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
  oracle::QuestionLeases leases_;
};

}  // namespace pal::label
