// terminal: what a command prints on standard output: a progress bar, and aligned tables.
//
// Progress is a bar on a terminal and plain lines elsewhere. A rank's standard output is a pseudo-terminal of mpirun
// even when mpirun writes to a file, so a rank draws a bar only when run_under_mpirun set PAL_TERMINAL (the columns of
// the real terminal).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pal::launch {

class Progress {
 public:
  // `what` is printed before the bar. Without a terminal a line is printed at most every `quiet_seconds`.
  Progress(std::string what, int64_t total, double quiet_seconds = 10);
  ~Progress();  // prints the last state and ends the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // `note` is printed after the bar and its ETA: "loss 12.3  1840 images/s".
  void update(int64_t done, const std::string& note);

 private:
  using Clock = std::chrono::steady_clock;
  void show(Clock::time_point now);

  std::string what_, note_;
  int64_t total_, first_ = -1, done_ = 0, shown_ = -1;  // first_: the first value of done, above 0 in a resumed run
  double quiet_seconds_;
  int columns_;  // of the terminal; 0: there is none
  Clock::time_point start_, last_;
};

// A progress bar with images per second. The first call sets the total.
class ProgressRate {
 public:
  explicit ProgressRate(std::string what) : what_(std::move(what)) {}
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  double finish() {  // ends the bar's line
    bar_.reset();
    return seconds();
  }
  void operator()(int64_t done, int64_t total);

 private:
  std::string what_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::unique_ptr<Progress> bar_;
  int64_t first_ = 0;  // above 0 in a resumed import: what an earlier process did is not part of the rate
};

struct ProgressState {
  std::string what, note;
  int64_t done = 0, total = 0;
  double eta_seconds = -1;  // below 0: not known yet
};
// The line of a state: with a bar, cut to `columns`; without a bar when columns is 0.
std::string progress_line(const ProgressState& state, int columns);
// "0:07", "12:34", "3:04:05".
std::string format_seconds(double seconds);
// "1.5 MB".
std::string megabytes(int64_t bytes);

constexpr size_t kPageColumns = 120;  // lines and tables that commands print fit into these

// The text in lines of at most `columns` characters, broken at blanks. A longer word is a line of its own.
std::vector<std::string> broken_lines(const std::string& text, size_t columns);

// The first row is the head. A column is right-aligned when each cell below the head is empty or begins with a digit or
// a sign. Widths count UTF-8 characters. Texts of the last column go on in further lines where the table is wider than
// kPageColumns.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace pal::launch
