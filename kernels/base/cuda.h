// cuda: the names a header needs to declare a CUDA twin, without the CUDA toolkit.
#pragma once

#include <cstdint>

struct CUstream_st;
using cudaStream_t = CUstream_st*;  // as the CUDA runtime declares it

namespace pal::kernels {

// bfloat16 as it lies in memory: the upper half of a float. Arithmetic on it is fp32.
struct bf16 {
  uint16_t bits;
};

}  // namespace pal::kernels
