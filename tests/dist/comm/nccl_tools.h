// nccl_tools: device buffers that are filled and read in a stream, and what each rank gives: small integers, whose sums
// are exact in every type.
#pragma once

#include <cuda_runtime_api.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "dist/comm/nccl_channel.h"
#include "kernels/base/cuda_check.h"

namespace pal::dist {

// bfloat16 as its bits; the values here have at most eight of them, so cutting is exact.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  Half(int value) {
    const auto wide = static_cast<float>(value);
    uint32_t all;
    std::memcpy(&all, &wide, sizeof(all));
    bits = static_cast<uint16_t>(all >> 16);
  }
  bool operator==(const Half&) const = default;
};

template <class T>
struct TypeOf;
template <>
struct TypeOf<float> {
  static constexpr NcclType value = NcclType::float32;
};
template <>
struct TypeOf<double> {
  static constexpr NcclType value = NcclType::float64;
};
template <>
struct TypeOf<Half> {
  static constexpr NcclType value = NcclType::bfloat16;
};
template <>
struct TypeOf<int32_t> {
  static constexpr NcclType value = NcclType::int32;
};
template <>
struct TypeOf<int64_t> {
  static constexpr NcclType value = NcclType::int64;
};
template <>
struct TypeOf<uint8_t> {
  static constexpr NcclType value = NcclType::uint8;
};

inline int given(int rank, int64_t i) { return static_cast<int>((i * 7 + i / 5) % 17) + 5 * rank; }

class UserStream {
 public:
  UserStream() { PAL_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~UserStream() { cudaStreamDestroy(stream_); }
  UserStream(const UserStream&) = delete;
  UserStream& operator=(const UserStream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

template <class T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t n) : n_(n) {
    PAL_CUDA_CHECK(cudaMalloc(&device_, bytes()));
    PAL_CUDA_CHECK(cudaMallocHost(&host_, bytes()));
  }
  ~DeviceBuffer() {
    cudaFree(device_);
    cudaFreeHost(host_);
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  T* data() const { return device_; }
  size_t size() const { return n_; }
  // Asynchronous: the device sees it when the stream reaches it.
  void put(const std::vector<T>& values, cudaStream_t stream) {
    std::copy(values.begin(), values.end(), host_);
    PAL_CUDA_CHECK(cudaMemcpyAsync(device_, host_, bytes(), cudaMemcpyHostToDevice, stream));
  }
  void give(int rank, cudaStream_t stream) {
    std::vector<T> values;
    for (size_t i = 0; i < n_; ++i) values.push_back(T(given(rank, static_cast<int64_t>(i))));
    put(values, stream);
  }
  std::vector<T> get(cudaStream_t stream) {
    PAL_CUDA_CHECK(cudaMemcpyAsync(host_, device_, bytes(), cudaMemcpyDeviceToHost, stream));
    PAL_CUDA_CHECK(cudaStreamSynchronize(stream));
    return std::vector<T>(host_, host_ + n_);
  }

 private:
  size_t bytes() const { return n_ * sizeof(T); }
  size_t n_;
  T *device_ = nullptr, *host_ = nullptr;
};

}  // namespace pal::dist
