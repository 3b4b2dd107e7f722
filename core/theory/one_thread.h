// one_thread: a scope in which LibTorch's linear algebra uses one thread.
//
// The matrices here are small: a second thread gains nothing, waits on a busy machine, and changes the order of sums.
// Thread: the limit holds for the calling thread.
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
