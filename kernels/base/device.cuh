// device: what the .cu files share: elements, sums in a fixed order, checks.
#pragma once

#include <cuda_bf16.h>

#include <cassert>
#include <cstdint>

#include "kernels/base/check.h"
#include "kernels/base/cuda.h"
#include "kernels/base/cuda_check.h"
#include "kernels/base/view.h"

#if defined(PAL_SYNC_DEBUG) && defined(NDEBUG)  // then <cassert> does not declare it
extern "C" __host__ __device__ void __assert_fail(const char*, const char*, unsigned, const char*) noexcept;
#endif

namespace pal::kernels::cuda {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

__host__ __device__ constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// ---- elements: stored as float or bf16, computed in fp32 ----
__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(bf16 x) { return __uint_as_float(static_cast<uint32_t>(x.bits) << 16); }
// The type of computations: float for bf16, else the stored type.
__device__ inline double to_number(double x) { return x; }
__device__ inline float to_number(float x) { return x; }
__device__ inline float to_number(bf16 x) { return to_float(x); }
template <class T>
__device__ T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline bf16 from_float<bf16>(float x) {
  return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
}

// N elements that move in one load or store.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T v[N];
};
template <class T>
constexpr int kPack = 16 / static_cast<int>(sizeof(T));

// Whether rows of this matrix can be read in packs of 16 bytes.
template <class T>
bool packs(const MatrixView<T>& m) {
  return m.data == nullptr ||
         (reinterpret_cast<uintptr_t>(m.data) % 16 == 0 && m.stride % kPack<T> == 0 && m.cols % kPack<T> == 0);
}

// ---- sums in a fixed order ----
// Every lane gets the sum; all 32 must call. The tree is the same on every device.
template <class T>
__device__ T warp_sum(T x) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(kAllLanes, x, distance);
  return x;
}

// Thread 0 gets the sum over the block (of whole warps); all threads must call.
__device__ inline double block_sum(double x) {
  __shared__ double warp_sums[kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  x = warp_sum(x);
  __syncthreads();  // a former call may still be reading
  if (lane == 0) warp_sums[warp] = x;
  __syncthreads();
  return warp == 0 ? warp_sum(lane < warps ? warp_sums[lane] : 0.0) : 0.0;
}

// ---- checks ----
// On the device, in the debug build only: names the place on stderr and stops the kernel (cudaErrorAssert). Every index
// that a kernel reads from memory is checked so.
#ifdef PAL_SYNC_DEBUG
#define PAL_DEVICE_CHECK(cond) ((cond) ? static_cast<void>(0) : __assert_fail(#cond, __FILE__, __LINE__, __func__))
#else
#define PAL_DEVICE_CHECK(cond) static_cast<void>(0)
#endif

// After every launch.
inline void check_launch([[maybe_unused]] cudaStream_t stream) {
  PAL_CUDA_CHECK(cudaGetLastError());
#ifdef PAL_SYNC_DEBUG
  PAL_CUDA_CHECK(cudaStreamSynchronize(stream));
#endif
}

}  // namespace pal::kernels::cuda
