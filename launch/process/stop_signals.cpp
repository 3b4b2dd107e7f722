#include "launch/process/stop_signals.h"

#include <ctime>
#include <exception>

namespace pal::launch {

StopSignals::StopSignals() {
  sigemptyset(&set_);
  sigaddset(&set_, SIGUSR2);
  sigaddset(&set_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set_, &before_);
}

// A rank that failed waits for rank 0 to end the job; an orderly end is not to be cut short by a late signal.
StopSignals::~StopSignals() {
  if (std::uncaught_exceptions() > 0) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool StopSignals::asked() {
  const timespec now{};
  while (sigtimedwait(&set_, nullptr, &now) > 0) asked_ = true;
  return asked_;
}

}  // namespace pal::launch
