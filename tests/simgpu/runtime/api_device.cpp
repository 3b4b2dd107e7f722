// api_device: how many devices, which one, what it can do.
#include <cstdio>
#include <cstring>

#include "tests/simgpu/runtime/device.h"
#include "tests/simgpu/runtime/properties.h"

using namespace simgpu;

namespace {

// -1: an attribute that no program here has asked for.
int attribute(Device& device, cudaDeviceAttr which) {
  switch (which) {
    case cudaDevAttrComputeCapabilityMajor:
      return device.target() / 10;
    case cudaDevAttrComputeCapabilityMinor:
      return device.target() % 10;
    case cudaDevAttrMultiProcessorCount:
      return kMultiprocessors;
    case cudaDevAttrWarpSize:
      return kWarpSize;
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return kMaxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimZ:
      return 64;
    case cudaDevAttrMaxGridDimX:
      return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return 65535;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return kThreadsPerMultiprocessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return kBlocksPerMultiprocessor;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return static_cast<int>(kMaxStaticShared);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(kMaxShared);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(kSharedPerMultiprocessor);
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return static_cast<int>(kReservedShared);
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return kRegisters;
    case cudaDevAttrTotalConstantMemory:
      return static_cast<int>(kConstantMemory);
    case cudaDevAttrL2CacheSize:
      return kL2Bytes;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrMemoryPoolsSupported:
      return 1;
    case cudaDevAttrCooperativeLaunch:
      return 0;  // blocks run one after another: no grid-wide barrier
    default:
      return -1;
  }
}

template <class F>
cudaError_t ask(const F& f) {
  return call(f, Needs::nothing);
}

template <class F>
cudaError_t of_device(int ordinal, const F& f) {
  return ask([&](Device& device) {
    return ordinal >= 0 && ordinal < device.settings.devices ? f(device) : cudaErrorInvalidDevice;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return ask([&](Device& device) {
    *count = device.settings.devices;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* out, int length, int ordinal) {
  return of_device(ordinal, [&](Device& device) {
    std::snprintf(out, static_cast<size_t>(length), "%s", device.bus(ordinal).c_str());
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  return ask([&](Device& device) {
    *can = 0;
    return device.settings.devices > 1 ? cudaSuccess : cudaErrorInvalidDevice;
  });
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaErrorNotSupported; }

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call([&](Device&) {
    *least = *greatest = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return ask([&](Device& all) {
    *device = current_device();
    return all.settings.devices > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}

// From CUDA 12 on this creates the device's context.
cudaError_t cudaSetDevice(int ordinal) {
  return of_device(ordinal, [&](Device& device) {
    current_device() = ordinal;
    return device.enter_context();
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int ordinal) {
  return of_device(ordinal, [&](Device& device) {
    *value = attribute(device, which);
    if (*value >= 0) return cudaSuccess;
    complain("device attribute " + std::to_string(which) + " is not known to the stand-in");
    return cudaErrorNotSupported;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int ordinal) {
  return of_device(ordinal, [&](Device& device) {
    *out = {};
    std::strcpy(out->name, "simgpu, a stand-in that interprets PTX");
    out->major = device.target() / 10;
    out->minor = device.target() % 10;
    out->totalGlobalMem = device.settings.memory;
    out->multiProcessorCount = kMultiprocessors;
    out->warpSize = kWarpSize;
    out->maxThreadsPerBlock = out->maxThreadsDim[0] = out->maxThreadsDim[1] = kMaxThreadsPerBlock;
    out->maxThreadsDim[2] = 64;
    out->maxGridSize[0] = 0x7fffffff;
    out->maxGridSize[1] = out->maxGridSize[2] = 65535;
    out->maxThreadsPerMultiProcessor = kThreadsPerMultiprocessor;
    out->maxBlocksPerMultiProcessor = kBlocksPerMultiprocessor;
    out->sharedMemPerBlock = kMaxStaticShared;
    out->sharedMemPerBlockOptin = kMaxShared;
    out->sharedMemPerMultiprocessor = kSharedPerMultiprocessor;
    out->reservedSharedMemPerBlock = kReservedShared;
    out->regsPerBlock = out->regsPerMultiprocessor = kRegisters;
    out->totalConstMem = kConstantMemory;
    out->l2CacheSize = kL2Bytes;
    out->unifiedAddressing = out->canMapHostMemory = out->concurrentKernels = out->memoryPoolsSupported = 1;
    return cudaSuccess;
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kCudaVersion;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = Device::get().settings.driver;
  return cudaSuccess;
}

}  // extern "C"
