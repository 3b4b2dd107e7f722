// cuda_check: PAL_CUDA_CHECK(call) throws pal::Error with the CUDA runtime's own message.
//
// What the user can fix (no driver, no device, out of memory) has exit code 2. Any other error is a bug: 70.
#pragma once

#include <cuda_runtime_api.h>

namespace pal::detail {
[[noreturn]] void fail_cuda(cudaError_t error, const char* call, const char* file, int line);
}  // namespace pal::detail

#define PAL_CUDA_CHECK(call)                                                                                \
  do {                                                                                                      \
    const cudaError_t pal_cuda_error = (call);                                                              \
    if (pal_cuda_error != cudaSuccess) ::pal::detail::fail_cuda(pal_cuda_error, #call, __FILE__, __LINE__); \
  } while (0)
