#include "dist/comm/device.h"

#include <map>
#include <set>

#include "kernels/base/error.h"

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
    return "ranks hold different versions of NCCL: rank 0 " + nccl_version_text(ranks[0].nccl) + ", rank " + number(r) +
           " on host " + ranks[r].host + " " + nccl_version_text(ranks[r].nccl) +
           "; install the same environment on every host (launch/setup)";
  }
  return "";
}

}  // namespace

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
    return both +
           "; give each rank a device of its own (CUDA_VISIBLE_DEVICES, srun --gpus-per-task=1), or the same list to "
           "all";
  }
  return version_conflict(ranks);
}

DeviceDecision decide_device(const std::string& asked, const std::vector<FoundDevices>& ranks, int rank) {
  if (asked == "cpu") return {DeviceKind::cpu, -1, "as train.device=cpu says"};
  std::string problem = without_device(ranks);
  if (problem.empty()) problem = device_conflict(ranks);
  if (!problem.empty()) {
    PAL_CHECK(asked != "cuda", problem + "; train.device is", asked,
              "set train.device=cpu to train without GPUs (pal doctor looks at this machine)");
    return {DeviceKind::cpu, -1, problem};
  }
  const FoundDevices& mine = ranks[static_cast<size_t>(rank)];
  const int ordinal = device_of(mine.local_rank, mine.visible);
  return {DeviceKind::cuda, ordinal,
          "local rank " + std::to_string(mine.local_rank) + " of " + std::to_string(mine.visible) +
              " visible device(s), PCI " + mine.bus};
}

}  // namespace pal::dist
