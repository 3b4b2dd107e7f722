// sort: numbers by an integer key on the device, stable; one instantiation of CUB's radix sort for all ops.
#pragma once

#include "kernels/base/cuda.h"

namespace pal::kernels::cuda {

// sorted_* get the (key, value) in ascending order of keys below 2^bits; equal keys keep their order. memory:
// sort_bytes(count, bits) of scratch. The CUDA runtime must be there even for the bytes: CUB asks it for the device.
void sort(uint64_t* sorted_keys, uint32_t* sorted_values, const uint64_t* keys, const uint32_t* values, int64_t count,
          int bits, void* memory, cudaStream_t stream);
int64_t sort_bytes(int64_t count, int bits);

// The bits that a number up to `largest` takes, at least one.
constexpr int bits_of(int64_t largest) {
  int bits = 1;
  while (largest >> bits) ++bits;
  return bits;
}

}  // namespace pal::kernels::cuda
