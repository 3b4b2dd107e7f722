// cuda_test: shared by the tests of the CUDA twins: the fixture that needs a device, numbers in float and bf16.
//
// A case stays below 20 million warp-instructions (where there is no GPU they are interpreted); what needs more is
// named DISABLED_Long... and runs with launch/test -C Long -L long.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/base/cuda.h"
#include "kernels/base/cuda_check.h"
#include "kernels/base/device_array.h"
#include "kernels/base/philox.h"
#include "kernels/base/view.h"

namespace pal::kernels {

inline bool has_device() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

// Compares a CUDA twin with its CPU twin; skipped where there is no device.
class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_device()) GTEST_SKIP() << "no CUDA device here";
  }
};

// float and bf16 as one: how a test's numbers are stored, and how exactly they come back.
template <class T>
struct Storage;
template <>
struct Storage<float> {
  static float store(double x) { return static_cast<float>(x); }
  static double read(float x) { return x; }
  static constexpr double kValue = 2e-6, kGradient = 1e-5;
};
template <>
struct Storage<bf16> {
  static bf16 store(double x) {
    const float f = static_cast<float>(x);
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
  }
  static double read(bf16 x) {
    const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
  }
  static constexpr double kValue = 1e-2, kGradient = 2e-2;
};

// A matrix as T stores it, and the same numbers in double.
template <class T>
struct Numbers {
  std::vector<T> stored;
  std::vector<double> exact;
  Numbers(int64_t count, double mean, double std, Random& random) {
    for (int64_t i = 0; i < count; ++i) {
      stored.push_back(Storage<T>::store(mean + std * random.normal()));
      exact.push_back(Storage<T>::read(stored.back()));
    }
  }
};

template <class T>
std::vector<double> read(const std::vector<T>& stored) {
  std::vector<double> out;
  for (const T& x : stored) out.push_back(Storage<T>::read(x));
  return out;
}

// ‖a − b‖ / ‖b‖.
inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / (norm > 0 ? norm : 1));
}

}  // namespace pal::kernels
