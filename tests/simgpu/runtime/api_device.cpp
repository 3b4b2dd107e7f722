// api_device: how many devices, which one, what it can do.
#include <cstdio>
#include <cstring>

#include "tests/simgpu/runtime/device.h"
#include "tests/simgpu/runtime/properties.h"

using namespace simgpu;

namespace {

// -1: an attribute nobody asked for so far.
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

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return call([&](Device& device) {
    *count = device.settings.devices;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* out, int length, int ordinal) {
  return call([&](Device& device) {
    if (ordinal != 0) return cudaErrorInvalidDevice;
    std::snprintf(out, static_cast<size_t>(length), "%s", device.settings.bus.c_str());
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  return call([&](Device&) {
    *can = 0;
    return cudaErrorInvalidDevice;  // there is one device
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call([&](Device&) {
    *least = *greatest = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call([&](Device&) {
    *device = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return call([&](Device&) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int ordinal) {
  return call([&](Device& device) {
    if (ordinal != 0) return cudaErrorInvalidDevice;
    *value = attribute(device, which);
    if (*value >= 0) return cudaSuccess;
    complain("device attribute " + std::to_string(which) + " is not known to the stand-in");
    return cudaErrorNotSupported;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int ordinal) {
  return call([&](Device& device) {
    if (ordinal != 0) return cudaErrorInvalidDevice;
    *out = {};
    std::strcpy(out->name, "simgpu, a stand-in that interprets PTX");
    out->major = device.target() / 10;
    out->minor = device.target() % 10;
    out->totalGlobalMem = kDeviceMemory;
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
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

}  // extern "C"
