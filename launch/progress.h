// progress: a bar on a terminal, plain lines otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace pal {

class Progress {
 public:
  // `what` stands before the bar; total in units; on a pipe a line is printed at most every `quiet_seconds`.
  Progress(std::string what, int64_t total, double quiet_seconds = 10);
  ~Progress();                                             // ends the line
  // `note` stands behind: "loss 12.3  1840 images/s". The ETA is the bar's own.
  void update(int64_t done, const std::string& note);

 private:
  std::string what_;
  int64_t total_, first_ = -1, done_ = 0;
  double quiet_seconds_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace pal
