// nccl_version: what of CUDA and NCCL this program is linked with, and whether it can be used here. For `pal doctor`.
#pragma once

#include <string>

namespace pal::dist {

struct CudaState {
  int devices = 0;
  std::string runtime;  // version of the CUDA runtime in this process, "13.0"; empty: a CPU build
  std::string driver;   // newest CUDA the driver serves; empty: no driver
  std::string nccl;     // version of the NCCL in this process, "2.29.7"; empty: a CPU build
  std::string torch;    // why LibTorch's CUDA half can not be used; empty when it can
  std::string reason;   // why there is no device to use; empty when there is one
};

// Never throws for want of a device.
CudaState cuda_state();

}  // namespace pal::dist
