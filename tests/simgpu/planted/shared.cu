// shared: bugs with shared memory and the block's barrier.
#include "tests/simgpu/planted/planted.h"

namespace planted {
namespace {

template <Version version>
__global__ void missing_syncthreads_kernel(float* x) {
  __shared__ float tile[kThreads];
  tile[threadIdx.x] = 0;  // something else to read too early
  __syncthreads();
  tile[threadIdx.x] = x[threadIdx.x];
  if (version == Version::clean) __syncthreads();
  x[threadIdx.x] = tile[kThreads - 1 - threadIdx.x];  // found here: missing_syncthreads
}

template <Version version>
__global__ void missing_syncwarp_kernel(float* x) {
  __shared__ float tile[kThreads];
  tile[threadIdx.x] = x[threadIdx.x];
  if (version == Version::clean) __syncwarp();
  x[threadIdx.x] = tile[threadIdx.x ^ 31];  // found here: missing_syncwarp
}

template <Version version>
__global__ void shared_out_of_bounds_kernel(float* x, int last) {
  __shared__ float tile[kThreads];
  tile[threadIdx.x + (version == Version::bug ? last : 0)] = x[threadIdx.x];  // found here: shared_out_of_bounds
  __syncthreads();
  x[threadIdx.x] = tile[threadIdx.x] + 1;
}

template <Version version>
__global__ void uninitialized_shared_kernel(float* x) {
  __shared__ float tile[kThreads];
  if (version == Version::clean || threadIdx.x > 0) tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[kThreads - 1 - threadIdx.x];  // found here: uninitialized_shared
}

// A whole warp does not reach the barrier.
template <Version version>
__global__ void partial_barrier_kernel(float* x) {
  __shared__ float total;
  if (threadIdx.x == 0) total = 1;
  if (version == Version::clean || threadIdx.x < 32) __syncthreads();  // found here: partial_barrier
  if (threadIdx.x < 32) x[threadIdx.x] += total;
}

// Half of a warp does not reach it, and waits at another one.
template <Version version>
__global__ void divergent_barrier_kernel(float* x, int half) {
  if (version == Version::clean) {
    __syncthreads();
  } else if (static_cast<int>(threadIdx.x) % 32 < half) {
    x[threadIdx.x] += 1;
    __syncthreads();  // found here: divergent_barrier
    return;
  }
  x[threadIdx.x] += 1;
}

}  // namespace

#define RUN(kernel, ...)                                           \
  if (version == Version::bug)                                     \
    kernel##_kernel<Version::bug><<<1, kThreads>>>(__VA_ARGS__);   \
  else                                                             \
    kernel##_kernel<Version::clean><<<1, kThreads>>>(__VA_ARGS__); \
  check(cudaDeviceSynchronize())

Outcome missing_syncthreads(Version version) {
  const Numbers x;
  RUN(missing_syncthreads, x.data());
  return compare(x.host(), [](int i) { return kThreads - 1 - i; });
}

Outcome missing_syncwarp(Version version) {
  const Numbers x;
  RUN(missing_syncwarp, x.data());
  return compare(x.host(), [](int i) { return i ^ 31; });
}

Outcome shared_out_of_bounds(Version version) {
  const Numbers x;
  RUN(shared_out_of_bounds, x.data(), 1);
  return compare(x.host(), [](int i) { return i + 1; });
}

Outcome uninitialized_shared(Version version) {
  const Numbers x;
  RUN(uninitialized_shared, x.data());
  return compare(x.host(), [](int i) { return kThreads - 1 - i; });
}

Outcome partial_barrier(Version version) {
  const Numbers x;
  RUN(partial_barrier, x.data());
  return compare(x.host(), [](int i) { return i < 32 ? i + 1 : i; });
}

Outcome divergent_barrier(Version version) {
  const Numbers x;
  RUN(divergent_barrier, x.data(), 16);
  return compare(x.host(), [](int i) { return i + 1; });
}

}  // namespace planted
