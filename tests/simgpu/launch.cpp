// launch: refuses a launch that a device would refuse, then runs the blocks in order.
//
// Blocks run in order and to the end. An algorithm that waits for an earlier block (a look-back scan) then always finds
// its result; one that waits for a later block exceeds the instruction limit.
#include "tests/simgpu/launch.h"

#include "tests/simgpu/block.h"

namespace simgpu {
namespace {

void check(bool holds, const Kernel& kernel, const std::string& sentence) {
  if (holds) return;
  FaultPlace place;
  place.kernel = kernel.name;
  throw Fault(FaultKind::bad_launch, sentence, place);
}

}  // namespace

void check_shape(const Kernel& kernel, const LaunchShape& s) {
  const uint64_t threads = uint64_t{s.block.x} * s.block.y * s.block.z;
  check(threads > 0 && s.block.x <= 1024 && s.block.y <= 1024 && s.block.z <= 64 && threads <= kMaxThreadsPerBlock,
        kernel,
        "a block of " + std::to_string(s.block.x) + " x " + std::to_string(s.block.y) + " x " +
            std::to_string(s.block.z) + " threads");
  check(threads <= static_cast<uint64_t>(kernel.max_threads), kernel,
        "a block of " + std::to_string(threads) + " threads, above the kernel's __launch_bounds__ of " +
            std::to_string(kernel.max_threads));
  check(
      s.grid.x > 0 && s.grid.y > 0 && s.grid.z > 0 && s.grid.x <= 0x7fffffff && s.grid.y <= 65535 && s.grid.z <= 65535,
      kernel,
      "a grid of " + std::to_string(s.grid.x) + " x " + std::to_string(s.grid.y) + " x " + std::to_string(s.grid.z) +
          " blocks");
  check(kernel.static_shared_bytes <= kMaxStaticShared &&
            kernel.static_shared_bytes + s.dynamic_shared_bytes <= kMaxShared,
        kernel,
        "shared memory of " + std::to_string(kernel.static_shared_bytes) + " + " +
            std::to_string(s.dynamic_shared_bytes) + " bytes");
}

LaunchStats launch(Memory& memory, const Kernel& kernel, const LaunchShape& shape, const void* arguments,
                   const Settings& settings) {
  check_shape(kernel, shape);
  Block block(memory, kernel, shape, arguments, settings);
  for (uint32_t z = 0; z < shape.grid.z; ++z) {
    for (uint32_t y = 0; y < shape.grid.y; ++y) {
      for (uint32_t x = 0; x < shape.grid.x; ++x) block.run({x, y, z});
    }
  }
  return {block.instructions()};
}

}  // namespace simgpu
