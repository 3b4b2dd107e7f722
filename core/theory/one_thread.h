// one_thread: LibTorch's linear algebra on one thread for the length of a scope.
//
// The matrices of the theory are small: two threads gain nothing, wait for each other where the machine is busy, and
// change the order of sums. Thread: the limit holds for the calling thread.
#pragma once

#include <ATen/Parallel.h>

namespace pal::theory {

class OneThread {
 public:
  OneThread() : before_(at::get_num_threads()) { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace pal::theory
