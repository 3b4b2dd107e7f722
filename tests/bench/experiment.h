// experiment: the active figure in closed form, ours against straightforward numpy, in turns on the same cores.
//
// The parent writes data, draws and pairs of every trial into a folder; numpy reads them, so that both sides compute the
// same trials. First the errors are compared: nothing is timed unless nine in ten are equal and the curves agree.
#pragma once

#include <cstdint>
#include <string>

#include "launch/process/interleaved.h"

namespace pal::bench {

struct ExperimentBenchOptions {
  launch::PeerOptions peer{.script = "tests/bench/experiment_numpy.py"};
  std::string json;     // "" writes none
  int turns = 5;        // per side
  int64_t trials = 10;  // a turn; the figure has 100
  int threads = 2;      // of each side
};
int bench_experiment(const ExperimentBenchOptions& options);

}  // namespace pal::bench
