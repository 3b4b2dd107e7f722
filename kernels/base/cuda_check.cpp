// cuda_check: what a CUDA error means to the user.
#include "kernels/base/cuda_check.h"

#include <string>

#include "kernels/base/error.h"

namespace pal::detail {

void fail_cuda(cudaError_t error, const char* call, const char* file, int line) {
  int devices = 0;  // without a device CUB reports an invalid device; the count gives the cause
  if (error == cudaErrorInvalidDevice && cudaGetDeviceCount(&devices) != cudaSuccess) error = cudaGetLastError();
  const std::string what = std::string("CUDA: ") + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")";
  switch (error) {
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
      fail(Exit::usage, what, "", "check the NVIDIA driver with nvidia-smi, or run on the CPU");
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:
      fail(Exit::usage, what, "", "check CUDA_VISIBLE_DEVICES and the ranks per machine");
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      fail(Exit::usage, what, "", "build again with this GPU in PAL_CUDA_ARCHITECTURES");
    case cudaErrorMemoryAllocation:
      fail(Exit::usage, what, "", "make the batch or the projector smaller");
    default:
      fail(Exit::bug, what, std::string(call) + " at " + file + ":" + std::to_string(line), "please report it");
  }
}

}  // namespace pal::detail
