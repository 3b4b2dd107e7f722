// nccl_links: the GPUs of this machine, and NCCL between them, measured with a job of one rank per device; for doctor
// and bench comm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/comm/device.h"
#include "dist/comm/world.h"

namespace pal::launch {

struct LinkOptions {
  int64_t most_bytes = int64_t{256} << 20;
  int repeats = 20;
  std::string json;  // "" writes none
};

// Prints tables of the devices and of all-reduce over sizes, and the result. Returns check_failed when a sum is wrong
// or the job fails. Without a device it prints what was not checked.
int measure_links(const dist::CudaState& cuda, const std::string& program, const LinkOptions& options);
// The devices that this process sees, and how the driver says they are linked; empty where it does not say.
std::vector<std::vector<std::string>> visible_devices();
std::string driver_topology();
// Collective: one of the ranks that measure_links starts, as `pal doctor` with these arguments.
int be_a_link_rank(dist::World& world, const LinkOptions& options);
std::vector<std::string> link_rank_arguments(const LinkOptions& options);

}  // namespace pal::launch
