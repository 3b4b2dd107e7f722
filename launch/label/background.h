// background: what goes on behind the labeling page: answers from elsewhere, figures for the dashboard, the next round.
//
// Thread: two of its own, one looks and one asks (choosing questions may take minutes). Users never wait for either.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/label/answer_service.h"
#include "core/label/label_stats.h"
#include "core/label/users.h"
#include "launch/label/page.h"

namespace pal::launch {

// A round that was asked: how many queries, or why none.
struct AskResult {
  int64_t queries = 0;
  std::string why = {};
};

struct BackgroundParts {
  label::AnswerService& service;
  const label::Users& people;
  std::function<label::LabelStats()> look;
  std::function<RunFacts()> facts;
  std::function<AskResult()> ask;  // puts a round into the ledger. Empty: nobody asks here
  std::function<void(const std::string&)> log;
};

class BackgroundWorker {
 public:
  explicit BackgroundWorker(BackgroundParts parts);
  ~BackgroundWorker();
  BackgroundWorker(const BackgroundWorker&) = delete;
  BackgroundWorker& operator=(const BackgroundWorker&) = delete;

  std::shared_ptr<const label::LabelStats> stats() const;
  RunFacts facts() const;

 private:
  void keep();         // of the first thread
  void keep_asking();  // of the second
  void look();
  bool wait(double seconds);  // false: the end
  bool low() const;           // somebody has little to answer

  const BackgroundParts parts_;
  mutable std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::shared_ptr<const label::LabelStats> stats_;
  RunFacts facts_;
  std::thread looks_, asks_;
};

}  // namespace pal::launch
