// checkpoint: how long a checkpoint holds the training thread up, ours against PyTorch's, in turns in one run.
//
// The state of ResNet-50 with an 8192³ projector and momentum: 1.4 GB, on one rank. Each turn waits until the files are
// written, so that nobody pays for another's disk.
#pragma once

#include <string>

#include "launch/process/interleaved.h"
#include "tests/bench/kernels.h"  // BenchSizes

namespace pal::bench {

struct CheckpointBenchOptions {
  launch::PeerOptions peer{.script = "tests/bench/checkpoint_peer.py"};
  std::string json;  // "" writes none
  int turns = 5;
  int threads = 2;     // of our copy
  std::string folder;  // where both write; "": a temporary one
  BenchSizes sizes = BenchSizes::full;
};

int bench_checkpoint(const CheckpointBenchOptions& options);

}  // namespace pal::bench
