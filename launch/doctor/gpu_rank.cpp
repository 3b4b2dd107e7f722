// gpu_rank: one rank of the job of gpu_parts.h: its parts in order, and its log.
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAFunctions.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/data/image/nvjpeg_decoder.h"
#include "core/ops/torch_cuda.h"
#include "kernels/base/clock.h"
#include "kernels/base/cuda_check.h"
#include "kernels/base/error.h"
#include "launch/doctor/gpu_parts.h"
#include "launch/doctor/kernel_checks.h"
#include "launch/entry.h"

namespace pal::launch {
namespace {

using detail::Checked;
using Json = nlohmann::ordered_json;

class RankLog {
 public:
  RankLog(const std::string& folder, int rank) : out_(folder + "/rank-" + std::to_string(rank) + ".jsonl") {
    PAL_CHECK(out_.good(), "no file can be written in this folder", folder, "change to a folder you may write to");
  }
  void write(const Json& line) { out_ << line.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl; }

  // Runs a part and logs it. Returns whether the device can be used further: the part did not throw. Where ranks wait
  // for each other in the part, an error is thrown again and ends the job.
  enum class Errors { logged, thrown };
  bool run(const char* part, const std::function<Checked()>& check, Errors errors = Errors::logged) {
    write({{"part", part}});
    const auto begin = Clock::now();
    Checked result;
    std::exception_ptr error;
    try {
      result = check();
    } catch (...) {
      result = {false, as_error(std::current_exception()).what(), {}};
      error = std::current_exception();
    }
    end(part, result.right ? GpuPart::State::passed : GpuPart::State::failed, result, seconds_since(begin));
    if (error && errors == Errors::thrown) std::rethrow_exception(error);
    return !error;
  }
  void skip(const char* part, const std::string& why) {
    write({{"part", part}});
    end(part, GpuPart::State::not_run, {false, why, {}}, 0);
  }

 private:
  void end(const char* part, GpuPart::State state, const Checked& result, double seconds) {
    write({{"part", part},
           {"state", static_cast<int>(state)},
           {"found", result.found},
           {"seconds", seconds},
           {"rows", result.rows}});
  }
  std::ofstream out_;
};

Checked check_all_kernels(bool quick, int threads) {
  KernelCheckSizes sizes;
  if (quick) sizes = {70, 40, 36, 2, 12, 1};
  const std::vector<KernelCheck> checks = check_kernels(sizes, kernels::Cpu{threads});
  detail::Wrong wrong;
  for (const KernelCheck& c : checks) wrong.compare("kernel " + c.op + ", " + c.shape + ",", c.error, c.tolerance);
  Checked result = wrong.result(fmt::format("{} kernels agree with their CPU twins", checks.size()));
  result.rows = kernel_check_rows(checks);
  return result;
}

// A thread that has not chosen this rank's device has created a context on another one, with memory of another rank.
Checked check_contexts(int own) {
  int devices = 0;
  PAL_CUDA_CHECK(cudaGetDeviceCount(&devices));
  detail::Wrong wrong;
  for (int d = 0; d < devices; ++d) {
    if (d != own && c10::cuda::hasPrimaryContext(static_cast<c10::DeviceIndex>(d)))
      wrong.add(fmt::format("this rank computes on cuda:{}, and one of its threads has used cuda:{}", own, d));
  }
  return wrong.result(devices == 1 ? "one device is visible" : "every thread uses the rank's own device");
}

void run_parts(dist::World& world, const GpuOptions& options) {
  const dist::FoundDevices found = dist::found_devices(world.host(), world.local_rank());
  const int device = dist::device_of(world.local_rank(), found.visible);
  RankLog log(options.folder, world.rank());
  log.write({{"host", world.host()}, {"device", fmt::format("cuda:{}, PCI {}", device, found.bus)}});
  const int threads = std::max(1, static_cast<int>(world.cores()));

  // One rank after the other may fail here, and no other waits for it.
  bool usable = log.run("start", [&]() -> Checked {
    PAL_CHECK(device >= 0, "this rank has no CUDA device", found.reason, "start at most as many ranks as devices");
    PAL_CUDA_CHECK(cudaSetDevice(device));
    ops::load_torch_cuda();
    return {true, "the device can be opened", {}};
  });
  const auto alone = [&](const char* part, const std::function<Checked()>& check) {
    if (usable) {
      usable = log.run(part, check);
    } else {
      log.skip(part, "an earlier part failed on this device");
    }
  };
  alone("kernels", [&] { return check_all_kernels(options.quick, threads); });
  alone("operators", [&] { return detail::check_operators(device); });
  alone("loader", [&] { return detail::check_loader(device, options.folder, world.rank()); });
  if (data::nvjpeg_state().reason.empty())
    alone("nvJPEG", [&] { return detail::check_nvjpeg(device, options.folder, world.rank()); });

  // From here on ranks wait for each other: with one broken device they would wait for ever.
  const at::Tensor broken = at::zeros({1}, at::kInt);
  broken.fill_(usable ? 0 : 1);
  world.control().all_reduce(broken);
  if (broken.item<int>() > 0) {
    for (const char* part : {"NCCL", "training", "contexts"}) log.skip(part, "a device of this job cannot be used");
    return;
  }
  const auto together = [&](const char* part, const std::function<Checked()>& check) {
    log.run(part, check, RankLog::Errors::thrown);
  };
  together("NCCL", [&] {
    world.use_device("cuda");
    return detail::check_collectives(world, device);
  });
  together("training", [&] { return detail::check_training(world, device, options.folder); });
  log.run("contexts", [&] { return check_contexts(device); });
}

}  // namespace

void run_gpu_parts(dist::World& world, const GpuOptions& options) {
  run_parts(world, options);
  world.control().barrier();  // every log is closed
}

}  // namespace pal::launch
