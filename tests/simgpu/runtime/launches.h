// launches: puts a kernel with its arguments into a stream.
#pragma once

#include "tests/simgpu/runtime/device.h"

namespace simgpu {

struct LaunchRequest {
  dim3 grid, block;
  size_t dynamic_shared = 0;
  cudaStream_t stream = nullptr;
};

// A launch that the device cannot take is refused here, at once, with a sentence on stderr. Arguments are copied now;
// an error of the kernel appears when it runs. Reference: cudaLaunchKernel.
cudaError_t launch_kernel(Device& device, KernelHandle* handle, const LaunchRequest& request, void** arguments);

}  // namespace simgpu
