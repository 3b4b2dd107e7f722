#include "dist/comm/device.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "dist/comm/mpi_check.h"
#include "kernels/base/cuda_error.h"
#include "kernels/base/error.h"

#ifdef PAL_WITH_CUDA
#include <cuda_runtime_api.h>
#include <nccl.h>
#endif

namespace pal::dist {
namespace {

std::string number(size_t n) { return std::to_string(n); }

// "rank 3 on host b: no NVIDIA driver"; empty when every rank has a device.
std::string without_device(const std::vector<FoundDevices>& ranks) {
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].visible == 0)
      return "rank " + number(r) + " on host " + ranks[r].host + " has no CUDA device: " + ranks[r].reason;
  }
  return "";
}

std::string version_conflict(const std::vector<FoundDevices>& ranks) {
  for (size_t r = 1; r < ranks.size(); ++r) {
    if (ranks[r].nccl == ranks[0].nccl) continue;
    return "the ranks have different versions of NCCL: rank 0 " + nccl_version_text(ranks[0].nccl) + ", rank " +
           number(r) + " on host " + ranks[r].host + " " + nccl_version_text(ranks[r].nccl) +
           "; install the same environment on every host (launch/setup)";
  }
  return "";
}

// Whether `auto` may mean CPUs: no rank has a device, or one machine has fewer of them than ranks. Otherwise
// GPUs were meant, and one broken device or wrong environment must not move a whole job to CPUs.
bool may_use_cpus(const std::vector<FoundDevices>& ranks) {
  const auto has_device = [](const FoundDevices& found) { return found.visible > 0; };
  if (std::none_of(ranks.begin(), ranks.end(), has_device)) return true;
  std::set<int> local;  // two machines of one name have the same local ranks
  return std::all_of(ranks.begin(), ranks.end(), [&](const FoundDevices& found) {
    return found.host == ranks[0].host && found.visible > 0 && static_cast<size_t>(found.visible) < ranks.size() &&
           local.insert(found.local_rank).second;
  });
}

}  // namespace

#ifndef PAL_WITH_CUDA

FoundDevices found_devices(const std::string& host, int local_rank) {
  return {host, local_rank, 0, "this program was built without CUDA", "", 0};
}

#else

FoundDevices found_devices(const std::string& host, int local_rank) {
  FoundDevices found;
  found.host = host;
  found.local_rank = local_rank;
  if (ncclGetVersion(&found.nccl) != ncclSuccess) found.nccl = 0;
  int driver = 0;
  cudaError_t error = cudaGetDeviceCount(&found.visible);
  if (error != cudaSuccess) {
    found.visible = 0;
    found.reason = cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0 ? "no NVIDIA driver on this machine"
                   : error == cudaErrorInsufficientDriver                      ? cuda_error(error, "").what()
                                                                               : cudaGetErrorString(error);
  } else if (found.visible == 0) {
    found.reason = "the driver shows no device (CUDA_VISIBLE_DEVICES?)";
  } else {
    char bus[32] = {};
    error = cudaDeviceGetPCIBusId(bus, sizeof(bus), device_of(local_rank, found.visible));
    found.bus = bus;
    if (error != cudaSuccess) {
      found.visible = 0;
      found.reason = cudaGetErrorString(error);
    }
  }
  cudaGetLastError();  // clears it for the next caller
  return found;
}

#endif

std::vector<FoundDevices> gather_found(const FoundDevices& mine, MPI_Comm comm) {
  struct Message {
    char host[256] = {}, reason[256] = {}, bus[32] = {};
    int local_rank = 0, visible = 0, nccl = 0;
  };
  Message out;
  std::snprintf(out.host, sizeof(out.host), "%s", mine.host.c_str());
  std::snprintf(out.reason, sizeof(out.reason), "%s", mine.reason.c_str());
  std::snprintf(out.bus, sizeof(out.bus), "%s", mine.bus.c_str());
  out.local_rank = mine.local_rank;
  out.visible = mine.visible;
  out.nccl = mine.nccl;
  int size = 1;
  PAL_MPI_CHECK(MPI_Comm_size(comm, &size));
  std::vector<Message> all(static_cast<size_t>(size));
  PAL_MPI_CHECK(MPI_Allgather(&out, sizeof(Message), MPI_BYTE, all.data(), sizeof(Message), MPI_BYTE, comm));
  std::vector<FoundDevices> found;
  for (const Message& m : all) found.push_back({m.host, m.local_rank, m.visible, m.reason, m.bus, m.nccl});
  return found;
}

int device_of(int local_rank, int visible) { return visible > 0 ? local_rank % visible : -1; }

std::string nccl_version_text(int code) {
  if (code == 0) return "none";
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." + std::to_string(code % 100);
}

std::string device_conflict(const std::vector<FoundDevices>& ranks) {
  std::map<std::string, std::set<int>> on_host;
  for (size_t r = 0; r < ranks.size(); ++r) on_host[ranks[r].host].insert(static_cast<int>(r));
  std::map<std::pair<std::string, std::string>, size_t> taken;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const FoundDevices& mine = ranks[r];
    const auto [other, fresh] = taken.emplace(std::make_pair(mine.host, mine.bus), r);
    if (fresh) continue;
    const std::string both = "ranks " + number(other->second) + " and " + number(r) + " would share the device at " +
                             mine.bus + " on host " + mine.host;
    const size_t there = on_host[mine.host].size();
    if (static_cast<size_t>(mine.visible) < there) {
      return both + ": it has " + number(there) + " ranks and " + std::to_string(mine.visible) +
             " visible device(s); start at most as many ranks per host as devices";
    }
    return both + "; let every rank of a host see all of its devices (srun --gpu-bind=none, no CUDA_VISIBLE_DEVICES)";
  }
  return version_conflict(ranks);
}

DeviceDecision decide_device(const std::string& asked, const std::vector<FoundDevices>& ranks, int rank,
                             const std::string& setting) {
  if (asked == "cpu") return {DeviceKind::cpu, -1, setting + "=cpu"};
  std::string problem = without_device(ranks);
  if (problem.empty()) problem = device_conflict(ranks);
  if (!problem.empty()) {
    PAL_CHECK(asked != "cuda" && may_use_cpus(ranks), problem + "; " + setting + " is", asked,
              "set " + setting + "=cpu to compute without GPUs (pal doctor checks this machine)");
    return {DeviceKind::cpu, -1, problem};
  }
  const FoundDevices& mine = ranks[static_cast<size_t>(rank)];
  const int ordinal = device_of(mine.local_rank, mine.visible);
  return {DeviceKind::cuda, ordinal,
          "local rank " + std::to_string(mine.local_rank) + " of " + std::to_string(mine.visible) +
              " visible device(s), PCI " + mine.bus};
}

}  // namespace pal::dist
