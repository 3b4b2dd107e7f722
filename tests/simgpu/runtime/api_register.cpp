// api_register: what the code that nvcc adds to a program calls: fat binaries, kernels, variables, launches.
#include <vector>

#include "tests/simgpu/runtime/device.h"
#include "tests/simgpu/runtime/launches.h"

using namespace simgpu;

namespace {

// Between <<<...>>> and the kernel's stub.
struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
std::vector<Configuration>& configurations() {
  static thread_local std::vector<Configuration> stack;
  return stack;
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) { return reinterpret_cast<void**>(Device::get().add_binary(wrapper)); }

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void**) {}  // at the end of the process, which takes everything with it

void __cudaRegisterFunction(void** binary, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  Device::get().add_kernel(reinterpret_cast<Binary*>(binary), host, name);
}

void __cudaRegisterVar(void** binary, char* host, char*, const char* name, int, size_t, int, int) {
  Device::get().add_variable(reinterpret_cast<Binary*>(binary), host, name);
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  return call([&](Device& device) {
    KernelHandle* handle = device.kernel(host);
    *kernel = reinterpret_cast<cudaKernel_t>(handle);
    return handle == nullptr ? cudaErrorInvalidDeviceFunction : cudaSuccess;
  });
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  configurations().push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (configurations().empty()) return cudaErrorMissingConfiguration;
  const Configuration top = configurations().back();
  configurations().pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream) {
  return call([&](Device& device) {
    return launch_kernel(device, reinterpret_cast<KernelHandle*>(kernel), {grid, block, shared, stream}, arguments);
  });
}

}  // extern "C"
