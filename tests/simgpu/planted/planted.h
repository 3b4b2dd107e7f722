// planted: kernels with one bug each, each with a correct twin, and helpers for the host's part of a case.
//
// A case runs one version and returns whether the numbers are right. The line at which the stand-in must find the bug
// carries the comment `found here: NAME`; planted_test.py looks it up.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace planted {

enum class Version { clean, bug };
enum class Outcome { right, wrong };
using Case = Outcome (*)(Version);

constexpr int kThreads = 64;

inline void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::printf("%s\n", cudaGetErrorName(error));
  std::exit(3);
}

// Numbers on the device: 0, 1, 2, ...
class Numbers {
 public:
  explicit Numbers(int count = kThreads) : count_(count) {
    check(cudaMalloc(&data_, count * sizeof(float)));
    check(cudaMemcpy(data_, counting().data(), count * sizeof(float), cudaMemcpyHostToDevice));
  }
  float* data() const { return data_; }
  std::vector<float> counting() const {
    std::vector<float> host(count_);
    for (int i = 0; i < count_; ++i) host[i] = static_cast<float>(i);
    return host;
  }
  std::vector<float> host() const {
    std::vector<float> host(count_);
    check(cudaMemcpy(host.data(), data_, count_ * sizeof(float), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  int count_;
  float* data_ = nullptr;
};

// Whether host()[i] is expected(i) for every i.
template <class F>
Outcome compare(const std::vector<float>& numbers, const F& expected) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != expected(static_cast<int>(i))) return Outcome::wrong;
  }
  return Outcome::right;
}

// ---- the cases ----
Outcome missing_syncthreads(Version);
Outcome missing_syncwarp(Version);
Outcome shared_out_of_bounds(Version);
Outcome uninitialized_shared(Version);
Outcome partial_barrier(Version);
Outcome divergent_barrier(Version);

Outcome global_out_of_bounds(Version);
Outcome use_after_free(Version);
Outcome misaligned_vector(Version);
Outcome host_pointer(Version);

Outcome shuffle_inactive(Version);
Outcome shuffle_mask(Version);
Outcome endless_spin(Version);
Outcome failed_check(Version);

Outcome too_many_threads(Version);
Outcome too_much_shared(Version);
Outcome written_constant(Version);

Outcome missing_stream_sync(Version);
Outcome missing_event(Version);
Outcome reused_pinned_source(Version);

}  // namespace planted
