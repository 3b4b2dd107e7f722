// sort: CUB's radix sort over 64-bit keys.
#include <cub/device/device_radix_sort.cuh>

#include "kernels/base/device.cuh"
#include "kernels/base/sort.h"

namespace pal::kernels::cuda {
namespace {

size_t bytes_of(int64_t count, int bits) {
  size_t bytes = 0;
  const uint64_t* keys = nullptr;
  const uint32_t* values = nullptr;
  PAL_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, static_cast<uint64_t*>(nullptr), values,
                                                 static_cast<uint32_t*>(nullptr), count, 0, bits));
  return bytes;
}

}  // namespace

int64_t sort_bytes(int64_t count, int bits) { return static_cast<int64_t>(bytes_of(count, bits)); }

void sort(uint64_t* sorted_keys, uint32_t* sorted_values, const uint64_t* keys, const uint32_t* values, int64_t count,
          int bits, void* memory, cudaStream_t stream) {
  size_t bytes = bytes_of(count, bits);
  PAL_CUDA_CHECK(
      cub::DeviceRadixSort::SortPairs(memory, bytes, keys, sorted_keys, values, sorted_values, count, 0, bits, stream));
  check_launch(stream);
}

}  // namespace pal::kernels::cuda
