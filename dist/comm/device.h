// device: which device each rank computes on, and whether the ranks' devices go together. Decisions only: no CUDA, no MPI.
#pragma once

#include <string>
#include <vector>

namespace pal::dist {

// What a rank found where it runs.
struct FoundDevices {
  std::string host;
  int local_rank = 0;  // among the ranks of the host
  int visible = 0;     // devices this process may use
  std::string reason;  // why it can use none; empty when it can
  std::string bus;     // PCI address of device_of(local_rank, visible)
  int nccl = 0;        // NCCL_VERSION_CODE of the library in this process; 0: none
};

enum class DeviceKind { cpu, cuda };

struct DeviceDecision {
  DeviceKind kind = DeviceKind::cpu;
  int ordinal = -1;  // of the CUDA device
  std::string why;   // for people, behind the device's name
};

// Local rank modulo visible devices; -1 where none is visible.
int device_of(int local_rank, int visible);

// A sentence about ranks that share a device or hold different versions of NCCL, or nothing. All ranks have a device.
std::string device_conflict(const std::vector<FoundDevices>& ranks);

// What `rank` computes on when train.device is `asked` (auto, cpu, cuda). The kind is the same on every rank: auto takes
// the GPUs only if all ranks have one of their own. Throws Error (usage) when cuda is asked for and cannot be had.
DeviceDecision decide_device(const std::string& asked, const std::vector<FoundDevices>& ranks, int rank);

// 22907 → "2.29.7"
std::string nccl_version_text(int code);

}  // namespace pal::dist
