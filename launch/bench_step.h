// bench_step: one optimisation step of ResNet-18 with VICReg on 2 CPU ranks × 1 thread, ours against PyTorch DDP.
//
// Who runs where: the parent writes the initial weights and the batches into a folder, starts both sides as jobs that
// stay alive, and gives them turns (ours, peer, ours, …), so that both see the same machine. A side that waits sleeps:
// our ranks each read a pipe of their own (waiting in MPI would spin), the peer's rank 0 its standard input.
// First in float64: the first 20 losses of both sides must agree to 1e-8, or nothing is timed.
#pragma once

#include <string>

#include "core/model/encoder.h"
#include "dist/world.h"
#include "launch/bench_common.h"

namespace pal {

struct StepBenchOptions {
  PeerOptions peer{.script = "tests/bench/ddp_step.py"};
  std::string json;                      // "" writes none
  std::string peer_layout = "default";   // default, channels_last
  int turns = 10;                        // per side
  int steps_per_turn = 2;
  int64_t batch = 32;                    // samples over both ranks, two views each, 32 × 32 pixels
  int64_t check_batch = 16;              // of the comparison of losses, 16 × 16 pixels
};

ModelSpec bench_step_model();
int bench_step(const StepBenchOptions& options, const std::string& program);
// One rank of ours: does what its pipe in `folder` says.
void bench_step_rank(const std::string& folder, const std::string& dtype, World& world);

}  // namespace pal
