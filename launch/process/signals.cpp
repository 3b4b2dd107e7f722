#include "launch/process/signals.h"

#include <ctime>
#include <exception>

namespace pal::launch {

BlockedSignals::BlockedSignals(std::initializer_list<int> signals) {
  sigemptyset(&set_);
  for (const int signal : signals) sigaddset(&set_, signal);
  pthread_sigmask(SIG_BLOCK, &set_, &before_);
}

void BlockedSignals::restore() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

int BlockedSignals::wait() const {
  int signal = 0;
  sigwait(&set_, &signal);
  return signal;
}

std::optional<int> BlockedSignals::take() const {
  const timespec now{};
  const int signal = sigtimedwait(&set_, nullptr, &now);
  return signal > 0 ? std::optional(signal) : std::nullopt;
}

bool BlockedSignals::pending() const {
  sigset_t pending, both;
  sigpending(&pending);
  sigandset(&both, &pending, &set_);
  return sigisemptyset(&both) == 0;
}

namespace {

volatile sig_atomic_t interrupted = 0;  // a signal handler can set nothing else

}  // namespace

StopSignals::StopSignals() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = SA_RESTART | SA_RESETHAND;
  sigaction(SIGINT, &action, &before_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &before_, nullptr);
  if (std::uncaught_exceptions() > 0) signals_.restore();
}

bool StopSignals::asked() {
  while (signals_.take()) asked_ = true;
  return asked_ || interrupted != 0;
}

}  // namespace pal::launch
