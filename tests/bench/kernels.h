// kernels: the CPU kernels, forward and backward, or the graph store, each case against its peers, interleaved in
// one run.
//
// Who runs where: for each case the parent writes the inputs into a folder and starts our side and every peer as
// processes of their own that stay alive and answer lines:
//   "check F"   run once, write the outputs to F.NAME (raw float32)   → {"outputs": [names], "value": v}
//   "go MS"     run again and again for MS milliseconds, at least once → {"ms": [...]}
//   "end"                                                              → {"peak_mb": VmHWM, "extra_mb": above the inputs}
// Turns go around (ours, peer, peer, ours, …), so that all see the same machine; who waits sleeps. Values and gradients
// must agree first, or nothing is timed.
#pragma once

#include <string>
#include <vector>

#include "launch/process/interleaved.h"

namespace pal::bench {

enum class BenchSizes { full, small };
enum class BenchSuite { kernels, graph };

struct KernelBenchOptions {
  BenchSuite suite = BenchSuite::kernels;
  launch::PeerOptions peer{.script = "tests/bench/kernels_peer.py"};
  std::vector<std::string> cases;  // none: all
  std::string json;                // "" writes none
  BenchSizes sizes = BenchSizes::full;
  int threads = 2;  // of each side
  int turns = 10;
  int turn_ms = 100;
};

std::vector<std::string> bench_case_names(BenchSuite suite);
int bench_kernels(const KernelBenchOptions& options, const std::string& program);
// Our side of the one case in options.cases: does what its standard input says.
int bench_kernels_side(const KernelBenchOptions& options, const std::string& folder);

}  // namespace pal::bench
