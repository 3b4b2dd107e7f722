// device_found: asks the CUDA runtime and NCCL of this process, and gathers what all ranks found. No LibTorch.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "dist/comm/device.h"

namespace pal::dist {

// Never throws for want of a device or a driver.
FoundDevices found_devices(const std::string& host, int local_rank);

// Collective over `comm`. By rank.
std::vector<FoundDevices> gather_found(const FoundDevices& mine, MPI_Comm comm);

}  // namespace pal::dist
