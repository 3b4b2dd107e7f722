// cmd_doctor: `pal doctor`: checks whether this machine has what PAL needs, and prints what to do if not.
#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <torch/version.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/data/image/nvjpeg_decoder.h"
#include "core/io/h5.h"
#include "dist/comm/device.h"
#include "dist/comm/world.h"
#include "kernels/base/error.h"
#include "kernels/base/isa.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/doctor/kernel_checks.h"
#include "launch/doctor/nccl_links.h"
#include "launch/process/machine.h"
#include "launch/process/mpirun.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;
constexpr double kGiB = 1024.0 * 1024 * 1024;

enum class Verdict { ok, warn, missing };

struct Finding {
  const char* what;
  Verdict verdict;
  std::string found;
  std::string todo = "";
};

Finding check_cpu() {
  const kernels::Isa isa = kernels::best_isa();
  const std::string found = proc_field("/proc/cpuinfo", "model name") + ", " + kernels::isa_name(isa);
  if (isa == kernels::Isa::scalar)
    return {"CPU", Verdict::warn, found, "without AVX2 the kernels are several times slower"};
  return {"CPU", Verdict::ok, found};
}

Finding check_cores() {
  cpu_set_t set;
  const int given = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
  const long all = sysconf(_SC_NPROCESSORS_ONLN);
  const std::string found = fmt::format("{} of {}", given, all);
  if (given < all)
    return {"cores", Verdict::warn, found,
            "taskset, a cgroup or mpirun's binding restricts this process to some cores"};
  return {"cores", Verdict::ok, found};
}

Finding check_memory() {
  const double total = std::atof(proc_field("/proc/meminfo", "MemTotal").c_str()) * 1024 / kGiB;
  const double free = std::atof(proc_field("/proc/meminfo", "MemAvailable").c_str()) * 1024 / kGiB;
  const std::string found = fmt::format("{:.1f} GiB free of {:.1f}", free, total);
  if (free < 2)
    return {"memory", Verdict::warn, found, "a rank of the quickstart needs about 1 GiB: close other programs"};
  return {"memory", Verdict::ok, found};
}

Finding check_disk() {
  struct statvfs disk {};
  if (statvfs(".", &disk) != 0) return {"disk", Verdict::warn, "unknown", "the current folder cannot be examined"};
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize) / kGiB;
  const std::string found = fmt::format("{:.1f} GiB free here", free);
  if (access(".", W_OK) != 0)
    return {"disk", Verdict::warn, "this folder is read-only",
            "run folders are made in runs/: change to a folder you may write to"};
  if (free < 2)
    return {"disk", Verdict::warn, found,
            "data sets and checkpoints need more: free some space, or use another folder"};
  return {"disk", Verdict::ok, found};
}

Finding check_gpu(const dist::CudaState& cuda) {
  if (!cuda.reason.empty()) return {"GPU", Verdict::warn, "none: " + cuda.reason, "training uses the CPU"};
  return {"GPU", Verdict::ok, fmt::format("{} device(s), driver for CUDA {}", cuda.devices, cuda.driver)};
}

Finding check_nccl(const dist::CudaState& cuda) {
  if (cuda.nccl.empty())
    return {"CUDA, NCCL", Verdict::warn, "not in this build", "for GPUs: launch/setup --cuda on, then build again"};
  if (!cuda.torch.empty())
    return {"CUDA, NCCL", Verdict::missing, cuda.torch,
            "install the LibTorch that this program was built with: launch/setup"};
  return {"CUDA, NCCL", Verdict::ok, fmt::format("{}, {}; LibTorch's CUDA half loads", cuda.runtime, cuda.nccl)};
}

Finding check_nvjpeg() {
  const data::NvjpegState nvjpeg = data::nvjpeg_state();
  if (nvjpeg.version.empty())
    return {"nvJPEG", Verdict::warn, "none: only data.decoder=nvjpeg needs it", nvjpeg.reason};
  return {"nvJPEG", Verdict::ok, nvjpeg.version};
}

// Starts a job of two ranks that make a World and run a collective, as training does.
Finding check_mpi(const Context& context) {
  if (dist::started_as_rank())
    return {"MPI", Verdict::ok, dist::mpi_library() + " (not tested: this process is a rank itself)"};
  try {
    const int code = run_under_mpirun(context.program, {"doctor", "--rank"}, 2, 1);
    if (code == 0) return {"MPI", Verdict::ok, dist::mpi_library() + ", a job of two ranks works, MPI_THREAD_MULTIPLE"};
    return {"MPI", Verdict::missing,
            fmt::format("{}: a job of two ranks failed with exit code {}", dist::mpi_library(), code),
            fmt::format("try: mpirun{} --bind-to none -np 2 hostname", geteuid() == 0 ? " --allow-run-as-root" : "")};
  } catch (const Error& e) {
    return {"MPI", Verdict::missing, e.what(), "install openmpi-bin"};
  }
}

Finding check_fashion() {
  const char* folder = "/usr/share/datasets/fashion-mnist";
  if (fs::exists("data/fashion.h5")) return {"Fashion-MNIST", Verdict::ok, "imported: data/fashion.h5"};
  if (fs::exists(std::string(folder) + "/train-images-idx3-ubyte.gz")) {
    return {"Fashion-MNIST", Verdict::ok, folder,
            fmt::format("to import it: pal data import idx {} data/fashion.h5", folder)};
  }
  return {"Fashion-MNIST", Verdict::warn, "not found",
          "the quickstart needs it: apt-get install dataset-fashion-mnist"};
}

// Compares the CUDA kernels with the CPU kernels on this machine's GPU. Returns whether all agree.
bool check_gpu_kernels(const dist::CudaState& cuda) {
  if (!cuda.reason.empty()) {
    std::fputs(fmt::format("\nGPU kernels were not compared with the CPU kernels: {}.\n", cuda.reason).c_str(), stdout);
    return true;
  }
#ifdef PAL_WITH_CUDA
  kernels::Cpu cpu;
  cpu.threads = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const std::vector<KernelCheck> checks = check_kernels({}, cpu);
  std::fputs(("\nGPU kernels compared with the CPU kernels:\n" + format_table(kernel_check_rows(checks))).c_str(),
             stdout);
  for (const KernelCheck& check : checks) {
    if (!check.passed()) return false;
  }
#endif
  return true;
}

std::string verdict(bool healthy, const dist::CudaState& cuda) {
  if (!healthy) return "\nResult: something is missing or wrong, see above.\n";
  if (!cuda.reason.empty()) return "\nResult: this machine can train on CPUs; no GPU was tested.\n";
  return fmt::format("\nResult: this machine can train on {} GPU{}.\n", cuda.devices, cuda.devices == 1 ? "" : "s");
}

int be_a_rank(Context& context) {
  dist::World& world = context.start_world();
  world.control().barrier();
  PAL_CHECK(world.size() == 2, "the job has {} ranks instead of 2", world.size(),
            "mpirun belongs to another MPI than this program");
  return static_cast<int>(Exit::ok);
}

}  // namespace

int cmd_doctor(const std::vector<std::string>& args, Context& context) {
  CLI::App app("Checks whether this machine can train, and prints what is missing and what to do.", "pal doctor");
  bool rank = false;
  LinkOptions links;
  bool link_rank = false;
  app.add_flag("--rank", rank, "")->group("");  // how the doctor starts itself under mpirun
  app.add_flag("--link-rank", link_rank, "")->group("");
  app.add_option("--most-bytes", links.most_bytes, "")->group("");
  app.add_option("--repeats", links.repeats, "")->group("");
  app.add_option("--json", links.json, "")->group("");
  app.footer(
      "On a machine with GPUs it also compares every CUDA kernel with its CPU twin and prints GB/s, shows how the "
      "GPUs\n"
      "are linked, and measures NCCL's all-reduce between them, in the columns of nccl-tests, with sums that are "
      "checked.\n"
      "Exit code 1 when something that training needs is missing, a kernel or a sum is wrong.\nExample:\n  pal doctor");
  if (const int code = parse_arguments(app, args); code >= 0) return code;
  if (rank) return be_a_rank(context);
  if (link_rank) return be_a_link_rank(context.start_world(), links);

  std::fputs("checking this machine, and a job of two ranks\n", stdout);
  std::fflush(stdout);
  const dist::CudaState cuda = dist::cuda_state();
  const std::vector<Finding> findings = {
      check_cpu(),
      check_cores(),
      check_memory(),
      {"LibTorch", Verdict::ok, TORCH_VERSION},
      check_gpu(cuda),
      check_nccl(cuda),
      check_nvjpeg(),
      check_mpi(context),
      {"HDF5", Verdict::ok, io::h5::library_version()},
      check_disk(),
      check_fashion(),
  };
  std::vector<std::vector<std::string>> rows = {{"what", "state", "found", "what to do"}};
  bool healthy = true;
  for (const Finding& f : findings) {
    const char* state = f.verdict == Verdict::ok ? "ok" : f.verdict == Verdict::warn ? "warn" : "missing";
    rows.push_back({f.what, state, f.found, f.todo});
    healthy = healthy && f.verdict != Verdict::missing;
  }
  std::fputs(format_table(rows).c_str(), stdout);
  healthy = check_gpu_kernels(cuda) && healthy;
  std::fflush(stdout);
  healthy = measure_links(cuda, context.program, links) == static_cast<int>(Exit::ok) && healthy;
  std::fputs(verdict(healthy, cuda).c_str(), stdout);
  return static_cast<int>(healthy ? Exit::ok : Exit::check_failed);
}

}  // namespace pal::launch
