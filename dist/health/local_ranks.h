// local_ranks: the processes of the ranks on this host, and whether one of them wants to run: a rank that is silent because
// others have taken its core is not hung, and one that is stopped does not want to run.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace pal::dist {

class LocalRanks {
 public:
  explicit LocalRanks(MPI_Comm comm);  // Collective.
  // False for a rank on another host, or where the kernel does not tell.
  bool wants_to_run(int rank) const;

 private:
  std::vector<int64_t> pids_;  // by rank; 0: on another host, or in a container that does not see it
};

// Whether any thread of a process runs or waits for a core, as the kernel says.
bool wants_to_run(int64_t pid);

}  // namespace pal::dist
