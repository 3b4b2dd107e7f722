// cuda_check: PAL_CUDA_CHECK(call) throws pal::Error with the CUDA runtime's own words.
//
// A machine that cannot (no driver, no device, out of memory) is the user's to mend: exit code 2. The rest is ours: 70.
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
