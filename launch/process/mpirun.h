// mpirun: starts N ranks of this program on this machine: root, binding and oversubscription handled.
#pragma once

#include <string>
#include <vector>

namespace pal::launch {

// Runs `program args…` on `ranks` ranks and returns the exit code of the job (a rank's own code where there is one,
// 128 + signal when a rank was killed, which is said in a sentence). `threads` per rank goes to OMP_NUM_THREADS.
// Signals INT, TERM, USR1 and USR2 are passed on. No rank outlives this call, nor this process.
int run_under_mpirun(const std::string& program, const std::vector<std::string>& args, int ranks, int threads);

// What INT, TERM and HUP do to a job: they reach the ranks as they are, or the first one becomes USR2, which asks the
// ranks for a checkpoint.
enum class OnStop { pass_on, checkpoint };
struct JobEnd {
  int code = 0;        // of mpirun: a rank's own, or 128 + signal
  int stopped_by = 0;  // the signal that this process was sent, or 0
};
// The same as run_under_mpirun, said to nobody.
JobEnd run_job(const std::string& program, const std::vector<std::string>& args, int ranks, int threads,
               OnStop on_stop);

// What the options of mpirun depend on.
struct HostFacts {
  int cores = 1;         // physical, of the whole machine: what Open MPI counts as slots
  int usable_cores = 1;  // physical, that this process may use
  bool root = false;
  bool cross_memory = true;  // processes may read each other's memory; a container's filter may forbid it
};
HostFacts host_facts();
std::vector<std::string> mpirun_options(const HostFacts& host, int ranks, int threads);

}  // namespace pal::launch
