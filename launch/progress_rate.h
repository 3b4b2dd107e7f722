// progress_rate: a bar with images a second, made when the total is known.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "launch/progress.h"

namespace pal::launch {

class ProgressRate {
 public:
  explicit ProgressRate(std::string what) : what_(std::move(what)) {}
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  double finish() {  // ends the bar's line
    bar_.reset();
    return seconds();
  }
  void operator()(int64_t done, int64_t total) {
    if (!bar_) {
      bar_ = std::make_unique<Progress>(what_, total);
      first_ = done;  // above 0 in a resumed import: what was done before is not of this rate
    }
    bar_->update(done, fmt::format("{:.0f} images/s", static_cast<double>(done - first_) / std::max(seconds(), 1e-9)));
  }

 private:
  std::string what_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::unique_ptr<Progress> bar_;
  int64_t first_ = 0;
};

inline std::string megabytes(int64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

}  // namespace pal::launch
