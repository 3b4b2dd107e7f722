// mpirun: starts N ranks of this program on this machine; handles root, binding and oversubscription.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/process/subprocess.h"

namespace pal::launch {

// Runs `program args…` on `ranks` ranks and returns the exit code of the job (the code of a rank if there is one,
// 128 + signal when a rank was killed, which it also prints). `threads` per rank goes to OMP_NUM_THREADS.
// Forwards the signals INT, TERM, USR1 and USR2. No rank outlives this call, nor this process.
int run_under_mpirun(const std::string& program, const std::vector<std::string>& args, int ranks, int threads);

// What INT, TERM and HUP do to a job: pass_on forwards them to the ranks; checkpoint turns the first one into USR2,
// which asks the ranks for a checkpoint.
enum class OnStop { pass_on, checkpoint };
// The same as run_under_mpirun, but silent; its code is mpirun's: a rank's own, or 128 + signal.
CommandEnd run_job(const std::string& program, const std::vector<std::string>& args, int ranks, int threads,
                   OnStop on_stop);

// Facts that the options of mpirun depend on.
struct HostFacts {
  int cores = 1;         // physical, of the whole machine: what Open MPI counts as slots
  int usable_cores = 1;  // physical, that this process may use
  bool root = false;
  bool cross_memory = true;  // processes may read each other's memory; a container's filter may forbid it
  int64_t shared_mb = 0;     // free in /dev/shm; 0 when the user or a batch system chooses hosts or transports
};
HostFacts host_facts();
std::vector<std::string> mpirun_options(const HostFacts& host, int ranks, int threads);

}  // namespace pal::launch
