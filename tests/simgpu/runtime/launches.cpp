#include "tests/simgpu/runtime/launches.h"

#include <cstring>

#include "tests/simgpu/runtime/counters.h"

namespace simgpu {
cudaError_t launch_kernel(Device& device, KernelHandle* handle, const LaunchRequest& request, void** arguments) {
  if (handle == nullptr) return cudaErrorInvalidDeviceFunction;
  Stream* stream = device.stream(request.stream);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  const Kernel& kernel = device.resolve(*handle);
  const LaunchShape shape{{request.grid.x, request.grid.y, request.grid.z},
                          {request.block.x, request.block.y, request.block.z},
                          request.dynamic_shared};
  check_shape(kernel, shape);
  if (request.dynamic_shared > handle->max_dynamic_shared) {
    complain("launch of " + readable(kernel.name) + " refused: " + std::to_string(request.dynamic_shared) +
             " bytes of dynamic shared memory, allowed are " + std::to_string(handle->max_dynamic_shared) +
             " (cudaFuncSetAttribute raises it)");
    return cudaErrorInvalidValue;
  }

  std::vector<char> block(kernel.parameter_bytes);
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    std::memcpy(block.data() + kernel.parameters[i].offset, arguments[i], kernel.parameters[i].bytes);
  }
  if (counting()) count_event(Count::launch, readable(kernel.name).substr(0, readable(kernel.name).find('(')));
  device.before_launch();
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
