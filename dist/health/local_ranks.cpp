#include "dist/health/local_ranks.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "dist/comm/mpi_check.h"

namespace pal::dist {
namespace {

namespace fs = std::filesystem;

// The same for processes of one start of one kernel that see each other's numbers and have one network: between two networks
// a cable may be cut.
uint64_t place() {
  std::string text;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), text);
  if (text.empty()) return 0;
  for (const char* space : {"/proc/self/ns/pid", "/proc/self/ns/net"}) {
    std::error_code error;
    text += fs::read_symlink(space, error).string();
    if (error) return 0;
  }
  return std::hash<std::string>()(text);
}

// "1234 (a name) R 1 ...": a name may hold anything, also brackets.
char state_of(const fs::path& stat) {
  std::string line;
  std::getline(std::ifstream(stat), line);
  const size_t name_end = line.rfind(") ");
  return name_end == std::string::npos || name_end + 2 >= line.size() ? ' ' : line[name_end + 2];
}

}  // namespace

LocalRanks::LocalRanks(MPI_Comm comm) {
  struct Process {
    uint64_t place = 0;
    int64_t pid = 0;
  };
  const Process mine{place(), getpid()};
  int size = 1;
  PAL_MPI_CHECK(MPI_Comm_size(comm, &size));
  std::vector<Process> all(static_cast<size_t>(size));
  PAL_MPI_CHECK(MPI_Allgather(&mine, sizeof(Process), MPI_BYTE, all.data(), sizeof(Process), MPI_BYTE, comm));
  for (const Process& p : all) pids_.push_back(mine.place != 0 && p.place == mine.place ? p.pid : 0);
}

bool LocalRanks::wants_to_run(int rank) const {
  const int64_t pid = pids_[static_cast<size_t>(rank)];
  return pid > 0 && pal::dist::wants_to_run(pid);
}

bool wants_to_run(int64_t pid) {
  std::error_code error;  // it may end while we look
  for (fs::directory_iterator thread("/proc/" + std::to_string(pid) + "/task", error), end; !error && thread != end;
       thread.increment(error)) {
    if (state_of(thread->path() / "stat") == 'R') return true;
  }
  return false;
}

}  // namespace pal::dist
