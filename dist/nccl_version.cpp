// nccl_version: asks the CUDA runtime, NCCL and LibTorch, in this order.
#include "dist/nccl_version.h"

#ifdef PAL_WITH_CUDA
#include <ATen/Context.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#endif

namespace pal {

#ifndef PAL_WITH_CUDA

CudaState cuda_state() {
  CudaState state;
  state.reason = "this program was built without CUDA";
  return state;
}

#else

namespace {
std::string cuda_version(int number) {  // 13000 → "13.0"; 0: none
  return number == 0 ? "" : std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}
}  // namespace

CudaState cuda_state() {
  CudaState state;
  int number = 0;
  if (cudaRuntimeGetVersion(&number) == cudaSuccess) state.runtime = cuda_version(number);
  if (cudaDriverGetVersion(&number) == cudaSuccess) state.driver = cuda_version(number);
  if (ncclGetVersion(&number) == ncclSuccess) {
    state.nccl = std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." + std::to_string(number % 100);
  }
  const cudaError_t error = cudaGetDeviceCount(&state.devices);
  if (error != cudaSuccess) {
    state.devices = 0;
    state.reason = state.driver.empty() ? "no NVIDIA driver on this machine" : cudaGetErrorString(error);
    cudaGetLastError();  // the next caller must not find it
  } else if (!at::hasCUDA()) {
    state.reason = "this LibTorch has no CUDA";
  } else if (state.devices == 0) {
    state.reason = "the driver shows no device (CUDA_VISIBLE_DEVICES?)";
  }
  return state;
}

#endif

}  // namespace pal
