// cuda_state: cuda_state() of device.h, which asks LibTorch, the CUDA runtime and NCCL.
#include "dist/comm/device.h"

#ifdef PAL_WITH_CUDA
#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <cuda_runtime_api.h>

#include "core/ops/torch_cuda.h"
#include "kernels/base/error.h"
#endif

namespace pal::dist {

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

// Why LibTorch cannot compute on a GPU; empty when it can.
std::string missing_operators() {
  try {
    ops::load_torch_cuda();
  } catch (const Error& e) {
    return e.what();
  }
  const auto product = c10::Dispatcher::singleton().findSchema({"aten::mm", ""});
  return product && product->hasKernelForDispatchKey(c10::DispatchKey::CUDA)
             ? ""
             : "this LibTorch has no operators for CUDA";
}
}  // namespace

CudaState cuda_state() {
  CudaState state;
  state.torch = missing_operators();
  int number = 0;
  if (cudaRuntimeGetVersion(&number) == cudaSuccess) state.runtime = cuda_version(number);
  if (cudaDriverGetVersion(&number) == cudaSuccess) state.driver = cuda_version(number);
  const FoundDevices found = found_devices("", 0);
  state.nccl = found.nccl == 0 ? "" : nccl_version_text(found.nccl);
  state.devices = found.visible;
  state.reason = found.visible > 0 && !at::hasCUDA()
                     ? "LibTorch finds none, but the driver shows " + std::to_string(found.visible)
                     : found.reason;
  return state;
}

#endif

}  // namespace pal::dist
