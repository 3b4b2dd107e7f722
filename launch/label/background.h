// background: work behind the labeling page: answers from the inbox, figures for the dashboard, the next round.
//
// Thread: two of its own. One refreshes answers and figures, the other chooses questions, which may take minutes.
//   Requests never wait for either.
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
  int64_t questions = 0;
  std::string why = {};
};

struct BackgroundParts {
  label::AnswerService& service;
  const label::Users& people;
  std::function<label::LabelStats()> stats;
  std::function<RunFacts()> facts;
  std::function<AskResult()> ask;  // records a round in the ledger; empty: this process asks no questions
  std::string why_none;            // a sentence for people, when `ask` is empty
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
  void refresh_loop();  // of the first thread
  void ask_loop();      // of the second
  void update();
  void set_why(const std::string& why);
  bool wait(double seconds);  // false: the worker stops
  bool low() const;           // a person has few cards left

  const BackgroundParts parts_;
  mutable std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::shared_ptr<const label::LabelStats> stats_;
  RunFacts facts_;
  std::string why_;  // RunFacts::why
  std::thread refreshing_, asking_;
};

}  // namespace pal::launch
