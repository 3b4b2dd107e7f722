// group_commit: many people's answers, one sync: who comes while a batch is being written waits and goes with the next one.
//
// Thread: any number call put(); one of them writes for all that wait.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/oracle/ledger/question.h"

namespace pal::label {

class GroupCommit {
 public:
  // Writes a batch; returns once it is on disk. A sentence for each entry, "" for those that were taken.
  using Write = std::function<std::vector<std::string>(const std::vector<oracle::Entry>&)>;
  explicit GroupCommit(Write write) : write_(std::move(write)) {}

  // Returns once these are on disk, with a sentence for each. Entries of one call stay together and in order.
  std::vector<std::string> put(std::vector<oracle::Entry> entries) {
    const auto mine = std::make_shared<Batch>();
    mine->entries = std::move(entries);
    std::unique_lock<std::mutex> lock(mutex_);
    waiting_.push_back(mine);
    while (!mine->done) {
      if (writing_) {
        changed_.wait(lock);
        continue;
      }
      writing_ = true;
      const std::vector<std::shared_ptr<Batch>> batches = std::move(waiting_);
      waiting_.clear();
      lock.unlock();
      write(batches);
      lock.lock();
      for (const auto& b : batches) b->done = true;
      writing_ = false;
      changed_.notify_all();
    }
    if (mine->error) std::rethrow_exception(mine->error);
    return mine->reasons;
  }

 private:
  struct Batch {
    std::vector<oracle::Entry> entries;
    std::vector<std::string> reasons;
    std::exception_ptr error;
    bool done = false;
  };

  void write(const std::vector<std::shared_ptr<Batch>>& batches) const {
    std::vector<oracle::Entry> all;
    for (const auto& b : batches) all.insert(all.end(), b->entries.begin(), b->entries.end());
    try {
      const std::vector<std::string> reasons = write_(all);
      size_t at = 0;
      for (const auto& b : batches) {
        b->reasons.assign(reasons.begin() + static_cast<ptrdiff_t>(at),
                          reasons.begin() + static_cast<ptrdiff_t>(at + b->entries.size()));
        at += b->entries.size();
      }
    } catch (...) {
      for (const auto& b : batches) b->error = std::current_exception();
    }
  }

  const Write write_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Batch>> waiting_;
  bool writing_ = false;
};

}  // namespace pal::label
