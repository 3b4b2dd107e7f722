// api_memory: cudaMalloc and its kin, copies and fills.
#include "tests/simgpu/runtime/copies.h"
#include "tests/simgpu/runtime/counters.h"

using namespace simgpu;

namespace {

cudaError_t allocate(void** out, size_t bytes, Space space, const char* name) {
  return call([&](Device& device) {
    if (out == nullptr) return cudaErrorInvalidValue;
    *out = nullptr;
    if (device.memory.live_bytes() + bytes > device.settings.memory) return cudaErrorMemoryAllocation;
    *out = device.memory.allocate(bytes, space);
    count_event(Count::allocation, name, bytes);
    return cudaSuccess;
  });
}

// Waits for all work first, as the driver does: nothing can be using it then.
cudaError_t free_now(void* address) {
  return call([&](Device& device) {
    count_event(Count::allocation, "free");
    device.timeline.finish_all();
    return device.memory.free(address) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** out, size_t bytes) { return allocate(out, bytes, Space::device, "cudaMalloc"); }
cudaError_t cudaMallocManaged(void** out, size_t bytes, unsigned) {
  return allocate(out, bytes, Space::managed, "cudaMallocManaged");
}
cudaError_t cudaMallocHost(void** out, size_t bytes) {
  return allocate(out, bytes, Space::pinned_host, "cudaMallocHost");
}
cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned) {
  return allocate(out, bytes, Space::pinned_host, "cudaHostAlloc");
}
cudaError_t cudaFree(void* address) { return free_now(address); }
cudaError_t cudaFreeHost(void* address) { return free_now(address); }

// In stream order: allocated at once here, but freed only when the stream has reached it.
cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t stream) {
  const cudaError_t known =
      call([&](Device& device) { return device.stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle; });
  return known == cudaSuccess ? allocate(out, bytes, Space::device, "cudaMallocAsync") : known;
}
cudaError_t cudaFreeAsync(void* address, cudaStream_t handle) {
  return call([&](Device& device) {
    Stream* stream = device.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    const Allocation* allocation = device.memory.find(address);
    if (address != nullptr && (allocation == nullptr || !allocation->live)) return cudaErrorInvalidValue;
    device.timeline.add(*stream, [&device, address] {
      if (device.memory.free(address)) return;
      complain("cudaFreeAsync of memory that was freed before");
      device.fail(cudaErrorIllegalAddress);
    });
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return call([&](Device& device) {
    *total = device.settings.memory;
    *free = device.settings.memory - device.memory.live_bytes();
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* address) {
  return call([&](Device& device) {
    const Allocation* allocation = device.memory.find(address);
    *out = {};
    out->type = cudaMemoryTypeUnregistered;
    if (allocation == nullptr || !allocation->live) return cudaSuccess;
    out->type = allocation->space == Space::pinned_host ? cudaMemoryTypeHost
                : allocation->space == Space::managed   ? cudaMemoryTypeManaged
                                                        : cudaMemoryTypeDevice;
    out->devicePointer = const_cast<void*>(address);
    if (out->type != cudaMemoryTypeDevice) out->hostPointer = const_cast<void*>(address);
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetDevicePointer(void** out, void* host, unsigned) {
  return call([&](Device& device) {
    const Allocation* allocation = device.memory.find(host);
    if (allocation == nullptr || !allocation->live || allocation->space != Space::pinned_host)
      return cudaErrorInvalidValue;
    *out = host;
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return call([&](Device& device) { return copy(device, line(to, from, bytes), kind, Return::when_done, nullptr); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return call([&](Device& device) { return copy(device, line(to, from, bytes), kind, Return::at_once, stream); });
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  return call([&](Device& device) {
    return copy(device, {to, to_pitch, from, from_pitch, width, height}, kind, Return::when_done, nullptr);
  });
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return call([&](Device& device) {
    return copy(device, {to, to_pitch, from, from_pitch, width, height}, kind, Return::at_once, stream);
  });
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return call([&](Device& device) { return fill(device, {to, bytes, value, bytes, 1}, nullptr); });
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return call([&](Device& device) { return fill(device, {to, bytes, value, bytes, 1}, stream); });
}
cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return call([&](Device& device) { return fill(device, {to, pitch, value, width, height}, nullptr); });
}
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  return call([&](Device& device) { return fill(device, {to, pitch, value, width, height}, stream); });
}

cudaError_t cudaGetSymbolAddress(void** out, const void* symbol) {
  return call([&](Device& device) {
    const Variable* variable = device.variable(symbol);
    if (variable == nullptr) return cudaErrorInvalidSymbol;
    *out = variable->address;
    return cudaSuccess;
  });
}
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  void* address = nullptr;
  if (const cudaError_t error = cudaGetSymbolAddress(&address, symbol); error != cudaSuccess) return error;
  return cudaMemcpy(static_cast<char*>(address) + offset, from, bytes, kind);
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  void* address = nullptr;
  if (const cudaError_t error = cudaGetSymbolAddress(&address, symbol); error != cudaSuccess) return error;
  return cudaMemcpy(to, static_cast<char*>(address) + offset, bytes, kind);
}

}  // extern "C"
