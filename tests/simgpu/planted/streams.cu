// streams: the host does not wait for its work: right by chance on a device, always wrong with SIMGPU_STREAMS=late.
#include <cstring>

#include "tests/simgpu/planted/planted.h"

namespace planted {
namespace {

__global__ void double_kernel(float* to, const float* from) { to[threadIdx.x] = 2 * from[threadIdx.x]; }

cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

float* pinned_numbers() {
  float* host = nullptr;
  check(cudaMallocHost(&host, kThreads * sizeof(float)));
  return host;
}

Outcome doubled(const float* host) {
  return compare(std::vector<float>(host, host + kThreads), [](int i) { return 2 * i; });
}

}  // namespace

Outcome missing_stream_sync(Version version) {
  const Numbers x;
  cudaStream_t stream = make_stream();
  float* host = pinned_numbers();
  check(cudaDeviceSynchronize());
  double_kernel<<<1, kThreads, 0, stream>>>(x.data(), x.data());
  check(cudaMemcpyAsync(host, x.data(), kThreads * sizeof(float), cudaMemcpyDeviceToHost, stream));
  if (version == Version::clean) check(cudaStreamSynchronize(stream));
  return doubled(host);
}

Outcome missing_event(Version version) {
  const Numbers x, y;
  cudaStream_t first = make_stream(), second = make_stream();
  cudaEvent_t made = nullptr;
  check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
  float* host = pinned_numbers();
  check(cudaDeviceSynchronize());
  double_kernel<<<1, kThreads, 0, first>>>(y.data(), x.data());
  check(cudaEventRecord(made, first));
  if (version == Version::clean) check(cudaStreamWaitEvent(second, made, 0));
  check(cudaMemcpyAsync(host, y.data(), kThreads * sizeof(float), cudaMemcpyDeviceToHost, second));
  check(cudaStreamSynchronize(second));
  return doubled(host);
}

// A pinned buffer is filled again while the copy out of it still runs.
Outcome reused_pinned_source(Version version) {
  const Numbers x;
  cudaStream_t stream = make_stream();
  float* host = pinned_numbers();
  check(cudaDeviceSynchronize());
  for (int i = 0; i < kThreads; ++i) host[i] = static_cast<float>(2 * i);
  check(cudaMemcpyAsync(x.data(), host, kThreads * sizeof(float), cudaMemcpyHostToDevice, stream));
  if (version == Version::clean) check(cudaStreamSynchronize(stream));
  std::memset(host, 0, kThreads * sizeof(float));
  check(cudaStreamSynchronize(stream));
  return doubled(x.host().data());
}

}  // namespace planted
