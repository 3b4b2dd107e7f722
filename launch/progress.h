// progress: a bar on a terminal, plain lines otherwise; both on standard output.
//
// A rank's standard output is a pseudo-terminal of mpirun's even when mpirun writes to a file, so under mpirun there is a
// bar only when run_under_mpirun said so (PAL_TERMINAL = columns of the real terminal).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace pal::launch {

class Progress {
 public:
  // `what` stands before the bar; total in units; on a pipe a line is printed at most every `quiet_seconds`.
  Progress(std::string what, int64_t total, double quiet_seconds = 10);
  ~Progress();  // shows the last state and ends the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // `note` stands behind: "loss 12.3  1840 images/s". The ETA is the bar's own.
  void update(int64_t done, const std::string& note);

 private:
  using Clock = std::chrono::steady_clock;
  void show(Clock::time_point now);

  std::string what_, note_;
  int64_t total_, first_ = -1, done_ = 0, shown_ = -1;  // first_: where counting began, which a resumed run has above 0
  double quiet_seconds_;
  int columns_;  // of the terminal; 0: there is none
  Clock::time_point start_, last_;
};

struct ProgressState {
  std::string what, note;
  int64_t done = 0, total = 0;
  double eta_seconds = -1;  // below 0: not known yet
};
// The line of a state; with a bar cut to `columns`, or without one when columns is 0.
std::string progress_line(const ProgressState& state, int columns);
// "0:07", "12:34", "3:04:05".
std::string format_seconds(double seconds);

}  // namespace pal::launch
