// kernel_check_tools: what the files of kernel_checks share: random inputs, a clock on the device, distances.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/device_array.h"
#include "kernels/base/philox.h"
#include "launch/doctor/kernel_checks.h"

namespace pal::launch::detail {

using namespace kernels;

// Numbers in [-1, 1).
inline std::vector<float> random_numbers(int64_t count, uint64_t stream) {
  Random random(1, Purpose::bench, stream);
  std::vector<float> numbers(count);
  for (float& x : numbers) x = 2 * random.next_float() - 1;
  return numbers;
}

// Memory a CPU twin borrows.
class HostScratch {
 public:
  explicit HostScratch(int64_t bytes) : memory_(bytes) {}
  operator Scratch() { return {memory_.data(), static_cast<int64_t>(memory_.size())}; }

 private:
  std::vector<char> memory_;
};

// Milliseconds of one launch, after one that warms up. Afterwards the results are there.
template <class F>
double milliseconds(const F& launch, int repeats) {
  cudaEvent_t begin = nullptr, end = nullptr;
  PAL_CUDA_CHECK(cudaEventCreate(&begin));
  PAL_CUDA_CHECK(cudaEventCreate(&end));
  launch();
  PAL_CUDA_CHECK(cudaEventRecord(begin, nullptr));
  for (int i = 0; i < repeats; ++i) launch();
  PAL_CUDA_CHECK(cudaEventRecord(end, nullptr));
  PAL_CUDA_CHECK(cudaEventSynchronize(end));
  float total = 0;
  PAL_CUDA_CHECK(cudaEventElapsedTime(&total, begin, end));
  PAL_CUDA_CHECK(cudaEventDestroy(begin));
  PAL_CUDA_CHECK(cudaEventDestroy(end));
  return total / std::max(repeats, 1);
}

// ‖a − b‖ / ‖b‖.
template <class A, class B>
double distance(const std::vector<A>& a, const std::vector<B>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += d * d;
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(difference / (norm > 0 ? norm : 1));
}

}  // namespace pal::launch::detail
