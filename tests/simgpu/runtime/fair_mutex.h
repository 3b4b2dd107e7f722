// fair_mutex: a mutex that threads get in the order in which they asked.
//
// A thread that waits for a stream gives the mutex away for moments only. With std::mutex the threads beside it may not
// get it for seconds on a busy machine, and the watchdog's then counts as silent.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace simgpu {

class FairMutex {
 public:
  void lock() {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t mine = next_++;
    turn_.wait(lock, [&] { return mine == now_; });
  }
  void unlock() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++now_;
    }
    turn_.notify_all();
  }
  // Threads that wait for it.
  uint64_t waiting() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return next_ - now_ > 0 ? next_ - now_ - 1 : 0;
  }

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
  uint64_t next_ = 0, now_ = 0;
};

}  // namespace simgpu
