// launch: runs one grid to its end, block after block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/simgpu/fault.h"
#include "tests/simgpu/memory.h"
#include "tests/simgpu/module.h"
#include "tests/simgpu/settings.h"

namespace simgpu {

// Limits of the simulated device; attributes and occupancy report the same.
inline constexpr int kMaxThreadsPerBlock = 1024;
inline constexpr size_t kMaxStaticShared = 48 * 1024;
inline constexpr size_t kMaxShared = 99 * 1024;  // static + dynamic, when the kernel asked for it

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

struct LaunchShape {
  Dim3 grid, block;
  size_t dynamic_shared_bytes = 0;
};

struct LaunchStats {
  uint64_t warp_instructions = 0;
};

// Throws Fault(bad_launch) for a launch that no device accepts.
void check_shape(const Kernel& kernel, const LaunchShape& shape);

// `arguments`: the kernel's parameter block of Kernel::parameter_bytes, each parameter at its offset; copied.
// Runs to the end before it returns. Throws Fault; memory then holds what was written so far.
LaunchStats launch(Memory& memory, const Kernel& kernel, const LaunchShape& shape, const void* arguments,
                   const Settings& settings);

}  // namespace simgpu
