#include "tests/simgpu/runtime/launches.h"

#include <cstring>

namespace simgpu {
namespace {

std::string size(const dim3& d) { return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z); }

cudaError_t check(const KernelHandle& handle, const LaunchRequest& r) {
  const auto refuse = [&](cudaError_t error, const std::string& why) {
    complain("launch of " + handle.name + " refused: " + why);
    return error;
  };
  const uint64_t threads = uint64_t{r.block.x} * r.block.y * r.block.z;
  if (r.grid.x == 0 || r.grid.y == 0 || r.grid.z == 0 || r.grid.x > 0x7fffffffu || r.grid.y > 65535 || r.grid.z > 65535) {
    return refuse(cudaErrorInvalidConfiguration, "a grid of " + size(r.grid) + " blocks");
  }
  if (threads == 0 || threads > kMaxThreadsPerBlock || r.block.z > 64) {
    return refuse(cudaErrorInvalidConfiguration, "a block of " + size(r.block) + " threads");
  }
  if (threads > static_cast<uint64_t>(handle.kernel->max_threads)) {
    return refuse(cudaErrorLaunchOutOfResources, "a block of " + size(r.block) + " threads, above its __launch_bounds__ of " +
                                                     std::to_string(handle.kernel->max_threads));
  }
  if (r.dynamic_shared > handle.max_dynamic_shared) {
    return refuse(cudaErrorInvalidValue, std::to_string(r.dynamic_shared) + " bytes of dynamic shared memory, allowed are " +
                                             std::to_string(handle.max_dynamic_shared) + " (cudaFuncSetAttribute raises it)");
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t launch_kernel(Device& device, KernelHandle* handle, const LaunchRequest& request, void** arguments) {
  if (handle == nullptr) return cudaErrorInvalidDeviceFunction;
  Stream* stream = device.stream(request.stream);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  const Kernel& kernel = device.resolve(*handle);
  if (const cudaError_t error = check(*handle, request); error != cudaSuccess) return error;

  std::vector<char> block(kernel.parameter_bytes);
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    std::memcpy(block.data() + kernel.parameters[i].offset, arguments[i], kernel.parameters[i].bytes);
  }
  const LaunchShape shape{{request.grid.x, request.grid.y, request.grid.z},
                          {request.block.x, request.block.y, request.block.z},
                          request.dynamic_shared};
  device.timeline.add(*stream, [&device, &kernel, shape, block = std::move(block)] {
    if (device.sticky() != cudaSuccess) return;
    try {
      device.count(kernel, launch(device.memory, kernel, shape, block.data(), device.settings));
    } catch (const Fault& fault) {
      complain(fault);
      device.fail(error_of(fault.kind()));
    }
  });
  return cudaSuccess;
}

}  // namespace simgpu
