// question_leases: who is looking at which question now, so that two people are not asked the same at the same time.
//
// For the one process that serves questions to people; in memory: after its restart everything is free again, which costs
// at most an answer given twice (the ledger keeps both). A person may be asked what somebody else has answered when more
// answers are wanted; never what they answered themselves.
// Thread: any.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace pal::oracle {

class QuestionLeases {
 public:
  explicit QuestionLeases(double seconds = 300) : seconds_(seconds) {}

  // Whether `person` has the query from `now` (seconds, any clock that does not go back) on: at most `people` hold it at a
  // time. Taking it again prolongs it.
  bool take(int64_t query, const std::string& person, double now, int64_t people = 1) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::map<std::string, double>& holders = leases_[query];
    std::erase_if(holders, [&](const auto& h) { return h.second <= now; });
    if (!holders.count(person) && static_cast<int64_t>(holders.size()) >= people) return false;
    holders[person] = now + seconds_;
    return true;
  }
  void give_back(int64_t query, const std::string& person) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = leases_.find(query);
    if (at == leases_.end()) return;
    at->second.erase(person);
    if (at->second.empty()) leases_.erase(at);
  }
  // Who holds it, by name.
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

}  // namespace pal::oracle
