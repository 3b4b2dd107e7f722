// stop_signals: USR2 and TERM as a question that is asked between steps: was this process told to stop?
#pragma once

#include <signal.h>

namespace pal::launch {

class StopSignals {
 public:
  StopSignals();   // Blocks them in this thread and in those it starts: make it before any other thread.
  ~StopSignals();  // After an error they end the process again, at once.
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  bool asked();  // one of them has come since

 private:
  sigset_t set_, before_;
  bool asked_ = false;
};

}  // namespace pal::launch
