// api_launch: launches by the host's name of a kernel, a kernel's attributes, occupancy.
#include <algorithm>

#include "tests/simgpu/runtime/launches.h"
#include "tests/simgpu/runtime/properties.h"

using namespace simgpu;

namespace {

template <class F>
cudaError_t on_kernel(const void* host, const F& f) {
  return call([&](Device& device) {
    KernelHandle* handle = device.kernel(host);
    if (handle == nullptr) return cudaErrorInvalidDeviceFunction;
    return f(device, *handle, device.resolve(*handle));
  });
}

// Registers are not known: only ptxas knows them.
int blocks_per_multiprocessor(const Kernel& kernel, int threads, size_t dynamic_shared) {
  const int rounded = (threads + kWarpSize - 1) / kWarpSize * kWarpSize;
  if (threads <= 0 || rounded > kThreadsPerMultiprocessor) return 0;
  const size_t shared = kernel.static_shared_bytes + dynamic_shared + kReservedShared;
  return std::min({kBlocksPerMultiprocessor, kThreadsPerMultiprocessor / rounded,
                   static_cast<int>(kSharedPerMultiprocessor / shared)});
}

}  // namespace

extern "C" {

cudaError_t cudaLaunchKernel(const void* host, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t stream) {
  return call([&](Device& device) {
    return launch_kernel(device, device.kernel(host), {grid, block, shared, stream}, arguments);
  });
}

// A kernel that may begin before the one ahead of it has ended begins after it here, which is one of the legal orders.
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* host, void** arguments) {
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttributeID id = config->attrs[i].id;
    if (id == cudaLaunchAttributeIgnore || id == cudaLaunchAttributeProgrammaticStreamSerialization ||
        id == cudaLaunchAttributePriority)
      continue;
    complain("launch attribute " + std::to_string(id) + " is not played by the stand-in");
    return call([](Device&) { return cudaErrorNotSupported; });
  }
  return cudaLaunchKernel(host, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, config->stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void* host) {
  return on_kernel(host, [&](Device&, KernelHandle& handle, const Kernel& kernel) {
    *out = {};
    out->sharedSizeBytes = kernel.static_shared_bytes;
    out->localSizeBytes = kernel.local_bytes;
    out->maxThreadsPerBlock = std::min(kernel.max_threads, kMaxThreadsPerBlock);
    out->numRegs = kPretendedRegisters;
    out->ptxVersion = out->binaryVersion = handle.binary->module->target();
    out->maxDynamicSharedSizeBytes = static_cast<int>(handle.max_dynamic_shared);
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* host, cudaFuncAttribute attribute, int value) {
  return on_kernel(host, [&](Device&, KernelHandle& handle, const Kernel& kernel) {
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;  // a hint
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaErrorNotSupported;
    if (value < 0 || kernel.static_shared_bytes + static_cast<size_t>(value) > kMaxShared) return cudaErrorInvalidValue;
    handle.max_dynamic_shared = static_cast<size_t>(value);
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetCacheConfig(const void* host, cudaFuncCache) {
  return on_kernel(host, [](Device&, KernelHandle&, const Kernel&) { return cudaSuccess; });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* host, int threads,
                                                                   size_t shared, unsigned) {
  return on_kernel(host, [&](Device&, KernelHandle&, const Kernel& kernel) {
    *blocks = blocks_per_multiprocessor(kernel, threads, shared);
    return cudaSuccess;
  });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host, int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host, threads, shared, cudaOccupancyDefault);
}

}  // extern "C"
