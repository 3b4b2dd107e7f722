// ordered_workers: several threads process numbered items; the calling thread takes the results in order.
//
// Order:  consume(i, result) is called by the calling thread for i = begin, begin + 1, … whichever worker made the
//         result: the output does not depend on the number of threads.
// Thread: at most `window` items are ahead of the one that is consumed, which bounds the memory. A worker's exception
//         is thrown by ordered_for at its item's turn; one of consume stops the workers.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace pal::data {

// make_worker() → a callable i → Result, one for each thread.
template <class Result, class MakeWorker, class Consume>
void ordered_for(int threads, int64_t begin, int64_t end, int64_t window, const MakeWorker& make_worker,
                 const Consume& consume) {
  struct Slot {
    std::optional<Result> result;
    std::exception_ptr error;
  };
  std::vector<Slot> slots(static_cast<size_t>(window));
  std::mutex mutex;
  std::condition_variable made, room;
  int64_t next = begin, consumed = begin;
  bool stop = false;

  const auto work = [&] {
    std::optional<decltype(make_worker())> worker;
    for (;;) {
      int64_t item = 0;
      {
        std::unique_lock lock(mutex);
        room.wait(lock, [&] { return stop || next >= end || next < consumed + window; });
        if (stop || next >= end) return;
        item = next++;
      }
      Slot done;
      try {
        if (!worker) worker.emplace(make_worker());
        done.result.emplace((*worker)(item));
      } catch (...) {
        done.error = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      slots[static_cast<size_t>(item % window)] = std::move(done);
      if (item == consumed) made.notify_one();
    }
  };

  std::vector<std::thread> workers;
  const auto finish = [&] {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    room.notify_all();
    for (std::thread& worker : workers) worker.join();
  };
  try {
    for (int t = 0; t < threads; ++t) workers.emplace_back(work);
    for (int64_t item = begin; item < end; ++item) {
      Slot& slot = slots[static_cast<size_t>(item % window)];
      Slot taken;
      {
        std::unique_lock lock(mutex);
        made.wait(lock, [&] { return slot.result || slot.error; });
        taken = std::exchange(slot, Slot());
      }
      if (taken.error) std::rethrow_exception(taken.error);
      consume(item, std::move(*taken.result));
      {
        const std::lock_guard lock(mutex);
        ++consumed;
      }
      room.notify_one();
    }
  } catch (...) {
    finish();
    throw;
  }
  finish();
}

}  // namespace pal::data
