// signals: blocks signals, so that a thread waits for them or polls them instead of being interrupted.
#pragma once

#include <signal.h>

#include <initializer_list>
#include <optional>

namespace pal::launch {

// Blocks signals in this thread and in the threads that it starts: make it before any other thread. They stay blocked
// until restore(); a destructor that unblocked them would let a late signal cut an orderly end short.
class BlockedSignals {
 public:
  explicit BlockedSignals(std::initializer_list<int> signals);
  void restore() const;             // the mask from before; a pending signal then takes effect
  int wait() const;                 // sleeps until one arrives and takes it
  std::optional<int> take() const;  // takes one that has arrived, if any; does not sleep
  bool pending() const;             // one has arrived and was not taken
  const sigset_t& before() const { return before_; }

 private:
  sigset_t set_, before_;
};

// USR2, TERM and INT (Ctrl-C) ask a training process to stop after the current step. The training thread polls asked()
// between steps. A second INT ends the process at once: a user at the terminal is not made to wait.
class StopSignals {
 public:
  StopSignals();
  // After an error the signals are unblocked: a failed rank waits for rank 0 to end the job and must stay killable.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  bool asked();  // one of them has arrived since the start

 private:
  const BlockedSignals signals_{SIGUSR2, SIGTERM};
  struct sigaction before_ {};  // of INT
  bool asked_ = false;
};

}  // namespace pal::launch
