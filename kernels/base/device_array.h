// device_array: device memory that is freed at the end of a scope, with copies to and from the host. For tests and
// checks: launchers take views and never allocate.
#pragma once

#include <vector>

#include "kernels/base/cuda_check.h"
#include "kernels/base/view.h"

namespace pal::kernels {

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(int64_t size) : size_(size) {
    PAL_CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&data_), (size + 1) * sizeof(T)));
    PAL_CUDA_CHECK(cudaMemset(data_, 0xff, (size + 1) * sizeof(T)));  // NaN: shows what a kernel did not write
  }
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(static_cast<int64_t>(host.size())) {
    PAL_CUDA_CHECK(cudaMemcpy(data_, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  Span<T> span() const { return {data_, size_}; }
  Scratch scratch() const { return {data_, size_ * static_cast<int64_t>(sizeof(T))}; }
  std::vector<T> host() const {
    std::vector<T> out(size_);
    PAL_CUDA_CHECK(cudaMemcpy(out.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  T* data_ = nullptr;
  int64_t size_;
};

}  // namespace pal::kernels
