// launches: launches that a device refuses, and a constant that a kernel writes.
#include "tests/simgpu/planted/planted.h"

namespace planted {
namespace {

__constant__ float constant[kThreads];

__global__ void __launch_bounds__(kThreads) bounded_kernel(float* x) { x[threadIdx.x % kThreads] += 1; }

// Through as many bytes as it is given.
__global__ void reverse_kernel(float* x, int numbers) {
  extern __shared__ float tile[];
  for (int i = static_cast<int>(threadIdx.x); i < numbers; i += kThreads) tile[i] = i < kThreads ? x[i] : 0;
  __syncthreads();
  x[threadIdx.x] = tile[kThreads - 1 - threadIdx.x];
}

__global__ void write_kernel(float* to, const float* from) {
  to[threadIdx.x] = 2 * from[threadIdx.x];  // found here: written_constant
}

__global__ void read_constant_kernel(float* x) { x[threadIdx.x] += constant[threadIdx.x]; }

}  // namespace

Outcome too_many_threads(Version version) {
  const Numbers x;
  bounded_kernel<<<1, version == Version::bug ? 2 * kThreads : kThreads>>>(x.data());
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
  return compare(x.host(), [](int i) { return i + 1; });
}

Outcome too_much_shared(Version version) {
  const Numbers x;
  constexpr int kBytes = 60000;
  if (version == Version::clean)
    check(cudaFuncSetAttribute(reverse_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  reverse_kernel<<<1, kThreads, kBytes>>>(x.data(), kBytes / static_cast<int>(sizeof(float)));
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
  return compare(x.host(), [](int i) { return kThreads - 1 - i; });
}

Outcome written_constant(Version version) {
  const Numbers x, twice;
  check(cudaMemcpyToSymbol(constant, twice.data(), kThreads * sizeof(float), 0, cudaMemcpyDeviceToDevice));
  void* address = nullptr;
  check(cudaGetSymbolAddress(&address, constant));
  write_kernel<<<1, kThreads>>>(version == Version::bug ? static_cast<float*>(address) : twice.data(), x.data());
  read_constant_kernel<<<1, kThreads>>>(x.data());
  check(cudaDeviceSynchronize());
  return compare(x.host(), [](int i) { return 2 * i; });
}

}  // namespace planted
