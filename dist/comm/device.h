// device: which device each rank computes on. A rank asks the CUDA runtime and NCCL what it has, all ranks gather the
// answers over MPI, and each rank makes the same decision from them. device.cpp needs no LibTorch; cuda_state() does.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace pal::dist {

// What a rank found on its host.
struct FoundDevices {
  std::string host;
  int local_rank = 0;  // among the ranks of the host
  int visible = 0;     // devices this process may use
  std::string reason;  // why this process can use no device; empty when it can
  std::string bus;     // PCI address of device_of(local_rank, visible)
  int nccl = 0;        // NCCL_VERSION_CODE of the library in this process; 0: none
};

enum class DeviceKind { cpu, cuda };

struct DeviceDecision {
  DeviceKind kind = DeviceKind::cpu;
  int ordinal = -1;  // of the CUDA device
  std::string why;   // printed behind the device's name
};

// Asks the CUDA runtime and NCCL. A missing device or driver is no error: `reason` holds it.
FoundDevices found_devices(const std::string& host, int local_rank);

// Collective over `comm`. By rank.
std::vector<FoundDevices> gather_found(const FoundDevices& mine, MPI_Comm comm);

// Local rank modulo visible devices; -1 where none is visible.
int device_of(int local_rank, int visible);

// All ranks have a device. Returns a sentence when two of them share one or have different versions of NCCL, else "".
std::string device_conflict(const std::vector<FoundDevices>& ranks);

// What `rank` computes on when `setting` (train.device, --device) is `asked` (auto, cpu, cuda). The kind is the same on
// every rank: auto takes the GPUs only if each rank has one of its own, and CPUs only if no rank has one or a single
// machine has fewer GPUs than ranks. Throws Error (usage) in the other cases, and when cuda is asked for and a rank has
// no device.
DeviceDecision decide_device(const std::string& asked, const std::vector<FoundDevices>& ranks, int rank,
                             const std::string& setting = "train.device");

// 22907 → "2.29.7"
std::string nccl_version_text(int code);

// The versions of CUDA and NCCL in this process, and whether they can be used here. For `pal doctor`.
struct CudaState {
  int devices = 0;
  std::string runtime;  // version of the CUDA runtime in this process, "13.0"; empty: a CPU build
  std::string driver;   // newest CUDA version that the driver supports; empty: no driver
  std::string nccl;     // version of the NCCL in this process, "2.29.7"; empty: a CPU build
  std::string torch;    // why LibTorch cannot compute on a GPU; empty when it can
  std::string reason;   // why no device can be used; empty when one can
};

// A missing device or driver is no error: `reason` holds it. Defined in cuda_state.cpp, which needs LibTorch.
CudaState cuda_state();

}  // namespace pal::dist
