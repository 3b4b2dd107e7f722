// hang_detector: from the heartbeats of all ranks to a verdict: who is silent, and who keeps the others waiting. No MPI, no clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dist/health/heartbeat.h"

namespace pal::dist {

struct PeerState {
  double silent_s = 0;   // since the last beat
  bool starved = false;  // it is silent, but wants to run: others have taken its core
  Heartbeat beat;             // the last one
};

struct HangLimits {
  double silence_s = 10;  // without a beat
  double starved_s = 60;  // the same of a rank that is starved
  double waiting_s = 10;  // inside one collective
};

// A sentence about the ranks that are silent or missing, or nothing. `heard` is by rank; this rank's own is among them.
// Another rank than 0 hears rank 0 alone.
std::optional<std::string> find_stalled_ranks(const std::vector<PeerState>& heard, int self, const HangLimits& limits);

}  // namespace pal::dist
