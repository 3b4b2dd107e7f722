// step: one training step on 2 CPU ranks × 1 thread, ours against PyTorch DDP with gloo and the official VICReg loss.
//
// Cases: resnet18 (projector of 512); projector (ResNet-18 with the official projector of 8192, three layers); quickstart
// (its net with its loader, against torchvision's transforms in a DataLoader).
// Who runs where: the parent writes the initial weights and the batches into a folder, starts both sides as jobs that
// stay alive, and gives them turns (ours, peer, ours, …), so that both see the same machine. A side that waits sleeps:
// our ranks each read a pipe of their own (waiting in MPI would spin), the peer's rank 0 its standard input.
// First in float64: the first 20 losses of both sides must agree to 1e-8, or nothing is timed. Of `projector` with 1024
// instead of 8192; not of quickstart, where each side draws its own augmentations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/spec.h"
#include "dist/comm/world.h"
#include "launch/process/interleaved.h"

namespace pal::bench {

struct StepCase {
  std::string name, script;
  int64_t projector = 0;          // width of its three layers; 0: the net and the loader of configs/quickstart.yaml
  int64_t checked_projector = 0;  // in the comparison of losses
  int64_t batch = 32;             // samples over both ranks, two views each
  int steps_per_turn = 2;
};
const std::vector<StepCase>& step_cases();

struct StepBenchOptions {
  launch::PeerOptions peer{.script = "tests/bench"};         // the folder of the peers' scripts
  std::string json;                                          // "" writes none
  std::string peer_layout = "default";                       // default, channels_last
  std::vector<std::string> cases;                            // names; none: all
  std::string images = "/usr/share/datasets/fashion-mnist";  // IDX files, for quickstart
  int turns = 10;                                            // per side
  int steps_per_turn = 0;                                    // 0: the case's own
  int64_t check_batch = 16;                                  // of the comparison of losses, 16 × 16 pixels
};

// ResNet-18 with a projector of three layers of this width.
model::ModelSpec bench_step_model(int64_t projector);
int bench_step(const StepBenchOptions& options, const std::string& program);
// One rank of ours: does what its pipe in `folder` says.
void bench_step_rank(const std::string& folder, const std::string& dtype, dist::World& world);

}  // namespace pal::bench
