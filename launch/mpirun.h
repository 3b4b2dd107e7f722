// mpirun: starts N ranks of this program on this machine: root, binding and oversubscription handled.
#pragma once

#include <string>
#include <vector>

namespace pal {

// Runs `program args…` on `ranks` ranks and returns the exit code of the job (a rank's own code where there is one).
// Signals INT and TERM are passed on; no rank outlives this call. `threads` per rank goes to OMP_NUM_THREADS.
int run_under_mpirun(const std::string& program, const std::vector<std::string>& args, int ranks, int threads);

}  // namespace pal
