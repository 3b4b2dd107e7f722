// memory: bugs with global memory.
#include "tests/simgpu/planted/planted.h"

namespace planted {
namespace {

__global__ void add_one_kernel(float* x, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) x[i] += 1;  // found here: global_out_of_bounds use_after_free host_pointer
}

__global__ void copy_four_kernel(float* x, int first) {
  float4* fours = reinterpret_cast<float4*>(x + first);
  float4 four = fours[0];  // found here: misaligned_vector
  four.x += 1;
  four.w += 1;
  fours[0] = four;
}

}  // namespace

Outcome global_out_of_bounds(Version version) {
  const Numbers x(100);
  add_one_kernel<<<2, kThreads>>>(x.data(), version == Version::bug ? 101 : 100);
  check(cudaDeviceSynchronize());
  return compare(x.host(), [](int i) { return i + 1; });
}

Outcome use_after_free(Version version) {
  const Numbers x;
  if (version == Version::bug) check(cudaFree(x.data()));
  add_one_kernel<<<1, kThreads>>>(x.data(), kThreads);
  check(cudaDeviceSynchronize());
  return compare(x.host(), [](int i) { return i + 1; });
}

Outcome misaligned_vector(Version version) {
  const Numbers x;
  copy_four_kernel<<<1, 1>>>(x.data(), version == Version::bug ? 1 : 4);
  check(cudaDeviceSynchronize());
  return compare(x.host(), [](int i) { return i == 4 || i == 7 ? i + 1 : i; });
}

// Memory of the host, which is not registered with the device.
Outcome host_pointer(Version version) {
  const Numbers x;
  std::vector<float> host(kThreads);
  add_one_kernel<<<1, kThreads>>>(version == Version::bug ? host.data() : x.data(), kThreads);
  check(cudaDeviceSynchronize());
  return compare(x.host(), [](int i) { return i + 1; });
}

}  // namespace planted
