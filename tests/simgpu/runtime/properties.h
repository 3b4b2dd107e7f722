// properties: those of the simulated device. Small, so that grids which follow the device stay small.
#pragma once

#include <cstddef>

#include "tests/simgpu/launch.h"

namespace simgpu {

inline constexpr int kWarpSize = 32;
inline constexpr int kMultiprocessors = 4;
inline constexpr int kThreadsPerMultiprocessor = 1024;
inline constexpr int kBlocksPerMultiprocessor = 16;
inline constexpr size_t kReservedShared = 1024;  // per block, as from compute capability 8.0 on
inline constexpr size_t kSharedPerMultiprocessor = kMaxShared + kReservedShared;
inline constexpr int kRegisters = 65536;
inline constexpr int kPretendedRegisters = 32;
inline constexpr size_t kConstantMemory = 64 * 1024;
inline constexpr int kL2Bytes = 4 << 20;
inline constexpr int kCudaVersion = 13000;
inline constexpr int kLeastDriver = 13000;  // an older driver refuses this runtime

}  // namespace simgpu
