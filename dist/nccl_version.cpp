// nccl_version: asks the CUDA runtime, NCCL and LibTorch, in this order.
#include "dist/nccl_version.h"

#ifdef PAL_WITH_CUDA
#include <ATen/Context.h>
#include <cuda_runtime_api.h>

#include "dist/device_found.h"
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
  const FoundDevices found = found_devices("", 0);
  state.nccl = found.nccl == 0 ? "" : nccl_version_text(found.nccl);
  state.devices = found.visible;
  state.reason = found.visible > 0 && !at::hasCUDA() ? "this LibTorch has no CUDA" : found.reason;
  return state;
}

#endif

}  // namespace pal
