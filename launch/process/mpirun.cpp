// This process waits for mpirun with sigwait and forwards signals; mpirun waits for the ranks. If mpirun dies first,
// the ranks become children of this process (subreaper), which kills them. If this process dies, the kernel sends
// mpirun a TERM.
#include "launch/process/mpirun.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "kernels/base/error.h"
#include "launch/process/loopback.h"
#include "launch/process/signals.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;

std::string find_mpirun() {
  std::stringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');) {
    const std::string candidate = (fs::path(folder) / "mpirun").string();
    if (!folder.empty() && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  const std::string built_with = PAL_MPIRUN;  // of the MPI library this program is linked to
  PAL_CHECK(access(built_with.c_str(), X_OK) == 0, "mpirun is not on PATH", "",
            "install openmpi-bin, or put the folder of your Open MPI's mpirun on PATH");
  return built_with;
}

// Physical cores among the given logical ones: hardware threads of a core name the same first sibling.
int physical_cores(const cpu_set_t& set) {
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    std::string siblings = "cpu" + std::to_string(cpu);
    std::ifstream("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list") >> siblings;
    cores.insert(siblings);
  }
  return std::max<int>(1, static_cast<int>(cores.size()));
}

bool others_choose() {
  for (const char* name :
       {"OMPI_MCA_btl", "OMPI_MCA_orte_default_hostfile", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

void pass_terminal_on() {
  winsize size{};
  const char* term = std::getenv("TERM");
  if (!isatty(STDOUT_FILENO) || term == nullptr || std::strcmp(term, "dumb") == 0) return;
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  setenv("PAL_TERMINAL", std::to_string(known ? size.ws_col : 80).c_str(), 1);
}

// Kills the ranks that mpirun left behind: they are children of this process now.
void kill_children() {
  for (;;) {
    for (const fs::directory_entry& entry :
         fs::directory_iterator("/proc", fs::directory_options::skip_permission_denied)) {
      const int pid = std::atoi(entry.path().filename().c_str());
      if (pid <= 0) continue;
      std::ifstream in(entry.path() / "stat");
      std::string line;
      std::getline(in, line);
      const size_t name_end = line.rfind(')');  // a name may hold anything
      char state = 0;
      int ppid = 0;
      if (name_end != std::string::npos && std::sscanf(line.c_str() + name_end + 1, " %c %d", &state, &ppid) == 2 &&
          ppid == getpid()) {
        kill(pid, SIGKILL);
      }
    }
    if (waitpid(-1, nullptr, 0) < 0) return;  // children of a killed process become children of this one: search again
  }
}

// Whether the ranks communicate by shared memory only. Open MPI takes 4 MB of it per rank.
bool one_host(const HostFacts& host, int ranks) { return host.shared_mb >= 8 * ranks; }

}  // namespace

HostFacts host_facts() {
  HostFacts host;
  cpu_set_t usable, all;
  CPU_ZERO(&all);
  for (long cpu = 0, n = sysconf(_SC_NPROCESSORS_ONLN); cpu < n && cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
  host.cores = physical_cores(all);
  host.usable_cores = sched_getaffinity(0, sizeof(usable), &usable) == 0 ? physical_cores(usable) : host.cores;
  host.root = geteuid() == 0;
  char from = 1, to = 0;
  iovec local{&to, 1}, remote{&from, 1};
  host.cross_memory = process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
  struct statvfs shared {};
  if (!others_choose() && statvfs("/dev/shm", &shared) == 0)
    host.shared_mb = static_cast<int64_t>(shared.f_bavail) * static_cast<int64_t>(shared.f_frsize) >> 20;
  return host;
}

std::vector<std::string> mpirun_options(const HostFacts& host, int ranks, int threads) {
  // --quiet: the banners after an error would hide our one sentence. A failed rank has nothing to clean up, so the
  // others are killed at once and not after Open MPI's grace period of a second.
  std::vector<std::string> options = {"--quiet", "--mca", "odls_base_sigkill_timeout", "0"};
  if (host.root) options.push_back("--allow-run-as-root");
  // By default Open MPI binds a rank with all its threads to one core. Only a job that uses the whole machine gets core
  // sets: mpirun always begins at the first core, so two smaller jobs would share those cores.
  if (ranks * threads == host.cores && host.usable_cores == host.cores) {
    options.insert(options.end(), {"--map-by", "slot:PE=" + std::to_string(threads), "--bind-to", "core"});
  } else {
    options.insert(options.end(), {"--bind-to", "none"});
  }
  if (ranks > host.cores) options.push_back("--oversubscribe");
  // Shared memory and nothing else: the ranks then listen on no port.
  if (one_host(host, ranks))
    options.insert(options.end(), {"--mca", "btl", "self,vader", "--default-hostfile", "none"});
  if (!host.cross_memory) options.insert(options.end(), {"--mca", "btl_vader_single_copy_mechanism", "none"});
  return options;
}

CommandEnd run_job(const std::string& program, const std::vector<std::string>& args, int ranks, int threads,
                   OnStop on_stop) {
  PAL_CHECK(ranks >= 1, "the number of ranks is {}", ranks, "give at least 1");
  const HostFacts host = host_facts();
  std::vector<std::string> command = {find_mpirun()};
  for (const std::string& option : mpirun_options(host, ranks, threads)) command.push_back(option);
  command.insert(command.end(), {"-np", std::to_string(ranks), program});
  command.insert(command.end(), args.begin(), args.end());

  const BlockedSignals signals{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  CommandEnd end;
  const auto prepare = [&] {
    setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
    pass_terminal_on();
  };
  const auto signal_to_send = [&](int signal) {
    if (signal != SIGINT && signal != SIGTERM && signal != SIGHUP) return signal;
    const bool first = std::exchange(end.stopped_by, signal) == 0;
    return first && on_stop == OnStop::checkpoint ? SIGUSR2 : signal == SIGHUP ? SIGTERM : signal;
  };
  // mpirun itself listens at every address for daemons of other hosts, whatever its options are.
  std::optional<LoopbackOnly> loopback;
  const auto started = [&](pid_t mpirun) {
    if (one_host(host, ranks)) loopback.emplace(mpirun);
  };
  end.code = run_command(command, signals, {prepare, signal_to_send, started});
  loopback.reset();
  kill_children();
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  signals.restore();
  return end;
}

int run_under_mpirun(const std::string& program, const std::vector<std::string>& args, int ranks, int threads) {
  const CommandEnd end = run_job(program, args, ranks, threads, OnStop::pass_on);
  const bool orderly = end.code == static_cast<int>(Exit::ok) || end.code == static_cast<int>(Exit::again) ||
                       end.code == static_cast<int>(Exit::no_progress);
  if (end.stopped_by != 0 && !orderly) return 128 + end.stopped_by;
  if (end.code > 128 && end.code < 128 + NSIG) {
    std::fprintf(
        stderr,
        "error: a rank was killed by signal %d (%s); if you did not kill it, check for lack of memory (dmesg) or "
        "report a crash\n",
        end.code - 128, strsignal(end.code - 128));
  }
  return end.code;
}

}  // namespace pal::launch
