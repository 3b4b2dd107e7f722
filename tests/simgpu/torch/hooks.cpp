// hooks: what LibTorch's CPU half asks its CUDA half: how many devices, pinned memory, whose pointer this is.
//
// The class must be named CUDAHooks: LibTorch's registry is asked for that name, once. The objects are never destroyed:
// tensors outlive main.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

#include "tests/simgpu/runtime/stand_in.h"
#include "tests/simgpu/torch/pinned.h"

namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*asks)(DeviceIndex));  // exported by libc10_cuda, in none of its headers
}

namespace at {
namespace {

bool has_context(DeviceIndex device) { return simgpu_has_context(device) != 0; }

}  // namespace

struct CUDAHooks final : CUDAHooksInterface {
  explicit CUDAHooks(const CUDAHooksArgs&) {}

  void init() const override {
    c10::cuda::CUDACachingAllocator::init(c10::cuda::device_count_ensure_non_zero());
    setHostAllocator(kCUDA, &simgpu::pinned_memory());
  }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return hasCUDA(); }
  bool hasCUDA() const override { return c10::cuda::device_count() > 0; }
  bool hasCUDART() const override { return true; }
  int getNumGPUs() const override { return c10::cuda::device_count(); }
  DeviceIndex deviceCount() const override { return c10::cuda::device_count(); }
  DeviceIndex current_device() const override { return getCurrentDevice(); }
  DeviceIndex getCurrentDevice() const override { return c10::cuda::current_device(); }
  void setCurrentDevice(DeviceIndex device) const override { c10::cuda::set_device(device); }
  DeviceIndex exchangeDevice(DeviceIndex device) const override { return c10::cuda::ExchangeDevice(device); }
  DeviceIndex maybeExchangeDevice(DeviceIndex device) const override { return c10::cuda::MaybeExchangeDevice(device); }
  bool hasPrimaryContext(DeviceIndex device) const override { return has_context(device); }
  Allocator* getCUDADeviceAllocator() const override { return c10::cuda::CUDACachingAllocator::get(); }
  Allocator* getPinnedMemoryAllocator() const override { return &simgpu::pinned_memory(); }
  bool isPinnedPtr(const void* data) const override {
    cudaPointerAttributes attributes{};
    return cudaPointerGetAttributes(&attributes, data) == cudaSuccess && attributes.type == cudaMemoryTypeHost;
  }
  Device getDeviceFromPtr(void* data) const override {
    cudaPointerAttributes attributes{};
    TORCH_CHECK(cudaPointerGetAttributes(&attributes, data) == cudaSuccess && attributes.type == cudaMemoryTypeDevice,
                "the pointer is not to device memory");
    return {kCUDA, getCurrentDevice()};
  }
  void deviceSynchronize(DeviceIndex) const override { c10::cuda::device_synchronize(); }
};

REGISTER_CUDA_HOOKS(CUDAHooks)

namespace {
const bool kContextIsAsked = [] {
  c10::cuda::_internal::setHasPrimaryContext(has_context);
  return true;
}();
}  // namespace
}  // namespace at
