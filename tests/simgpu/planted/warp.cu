// warp: bugs between the lanes of a warp; a kernel that never ends; one that stops itself.
#include "tests/simgpu/planted/planted.h"

namespace planted {
namespace {

// Lanes 0 to 15 read from a lane that is not in their mask.
__global__ void shuffle_inactive_kernel(float* x, int from) {
  if (threadIdx.x < 16)
    x[threadIdx.x] = __shfl_sync(0x0000ffffu, x[threadIdx.x], from);  // found here: shuffle_inactive
}

// The mask names all lanes, but half of them are at another shuffle.
template <Version version>
__global__ void shuffle_mask_kernel(float* x) {
  const float mine = x[threadIdx.x];
  if (version == Version::clean) {
    x[threadIdx.x] = __shfl_sync(0xffffffffu, mine, 3);
  } else if (threadIdx.x >= 16) {
    x[threadIdx.x] = 3;
  } else {
    x[threadIdx.x] = __shfl_sync(0xffff0000u, mine, 17);  // found here: shuffle_mask
  }
}

__global__ void endless_spin_kernel(int* flag, float* x) {
  while (atomicAdd(flag, 0) == 0) {  // found here: endless_spin
  }
  x[threadIdx.x] += 1;
}

__global__ void failed_check_kernel(float* x, int rows) {
  const int row = static_cast<int>(threadIdx.x);
  if (row >= rows) {
    printf("row %d of %d\n", row, rows);
    __trap();  // found here: failed_check
  }
  x[row] += 1;
}

}  // namespace

Outcome shuffle_inactive(Version version) {
  const Numbers x(32);
  shuffle_inactive_kernel<<<1, 32>>>(x.data(), version == Version::bug ? 20 : 10);
  check(cudaDeviceSynchronize());
  return compare(x.host(), [](int i) { return i < 16 ? 10 : i; });
}

Outcome shuffle_mask(Version version) {
  const Numbers x(32);
  if (version == Version::bug)
    shuffle_mask_kernel<Version::bug><<<1, 32>>>(x.data());
  else
    shuffle_mask_kernel<Version::clean><<<1, 32>>>(x.data());
  check(cudaDeviceSynchronize());
  return compare(x.host(), [](int) { return 3; });
}

Outcome endless_spin(Version version) {
  const Numbers x(32);
  int* flag = nullptr;
  const int set = version == Version::clean ? 1 : 0;
  check(cudaMalloc(&flag, sizeof(int)));
  check(cudaMemcpy(flag, &set, sizeof(int), cudaMemcpyHostToDevice));
  endless_spin_kernel<<<1, 32>>>(flag, x.data());
  check(cudaDeviceSynchronize());
  return compare(x.host(), [](int i) { return i + 1; });
}

Outcome failed_check(Version version) {
  const Numbers x(32);
  failed_check_kernel<<<1, 32>>>(x.data(), version == Version::bug ? 31 : 32);
  check(cudaDeviceSynchronize());
  return compare(x.host(), [](int i) { return i + 1; });
}

}  // namespace planted
