#include "dist/health/hang_detector.h"

#include <fmt/format.h>

#include <algorithm>

#include "dist/comm/rank_status.h"

namespace pal::dist {
namespace {

constexpr const char* kCommNames[kComms] = {"now", "bulk", "control", "device", "node"};

}  // namespace

std::optional<std::string> find_stalled_ranks(const std::vector<PeerState>& heard, int self, const HangLimits& limits) {
  const auto size = static_cast<int>(heard.size());
  std::vector<int> silent;
  for (int r = 0; r < size; ++r) {
    const double limit = heard[r].starved ? limits.starved_s : limits.silence_s;
    if (r != self && (self == 0 || r == 0) && heard[r].silent_s > limit) silent.push_back(r);
  }
  if (!silent.empty()) {
    const PeerState& h = heard[silent.front()];
    return fmt::format(
        "{} gave no sign of life for {:.1f} s, last at step {}; {}", ranks_text(silent), h.silent_s, h.beat.step,
        h.starved ? "other processes take its core" : "the process is stopped, or its host is unreachable");
  }
  if (self != 0) return std::nullopt;
  for (size_t c = 0; c + 1 < kComms; ++c) {  // not node: its ranks are not all ranks
    int64_t furthest = 0, waited = -1;
    for (const PeerState& h : heard) {
      if (static_cast<double>(h.beat.waiting_ms[c]) < 1000 * limits.waiting_s || h.beat.number[c] < furthest) continue;
      furthest = h.beat.number[c];
      waited = std::max(waited, h.beat.waiting_ms[c]);
    }
    if (waited < 0) continue;
    std::vector<int> missing;
    for (int r = 0; r < size; ++r) {
      if (heard[r].beat.number[c] < furthest) missing.push_back(r);
    }
    if (missing.empty()) {
      // Since the last of them came: before that they waited for it. One that has left it, or is further, says that it ends.
      for (const PeerState& h : heard)
        waited = std::min(waited, h.beat.number[c] == furthest ? h.beat.waiting_ms[c] : -1);
      if (static_cast<double>(waited) < 1000 * limits.waiting_s) continue;
      return fmt::format(
          "collective {} of '{}' does not end, though all ranks are in it, for {:.1f} s; look at the network", furthest,
          kCommNames[c], static_cast<double>(waited) / 1000);
    }
    const bool starved = std::any_of(missing.begin(), missing.end(), [&](int r) { return heard[r].starved; });
    if (starved && static_cast<double>(waited) < 1000 * limits.starved_s) continue;
    return fmt::format("{} did not come to collective {} of '{}', where others wait for {:.1f} s, last at step {}",
                       ranks_text(missing), furthest, kCommNames[c], static_cast<double>(waited) / 1000,
                       heard[missing.front()].beat.step);
  }
  return std::nullopt;
}

}  // namespace pal::dist
