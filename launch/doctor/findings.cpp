#include "launch/doctor/findings.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/data/image/nvjpeg_decoder.h"
#include "core/io/h5.h"
#include "dist/comm/world.h"
#include "kernels/base/error.h"
#include "kernels/base/isa.h"
#include "launch/process/machine.h"
#include "launch/process/mpirun.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;
constexpr double kGiB = 1024.0 * 1024 * 1024;

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

}  // namespace

std::vector<Finding> check_machine(const Context& context, const dist::CudaState& cuda) {
  return {
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
}

bool is_healthy(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(), [](const Finding& f) { return f.verdict == Verdict::missing; });
}

std::vector<std::vector<std::string>> finding_rows(const std::vector<Finding>& findings) {
  std::vector<std::vector<std::string>> rows = {{"what", "state", "found", "what to do"}};
  for (const Finding& f : findings) {
    const char* state = f.verdict == Verdict::ok ? "ok" : f.verdict == Verdict::warn ? "warn" : "missing";
    rows.push_back({f.what, state, f.found, f.todo});
  }
  return rows;
}

}  // namespace pal::launch
