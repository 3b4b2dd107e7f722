// tensors: what the callers of core/ops share: numbers that stay on the device of z, and index lists brought there.
//
// A number that an op computes (a value, a term) is a fp64 tensor of one element on z's device, so that nothing waits for
// a GPU until to_host reads all of them at once.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <vector>

namespace pal::ops {

inline at::Tensor empty_doubles(at::IntArrayRef shape, const at::Tensor& z) {
  return at::empty(shape, z.options().dtype(at::kDouble));
}
inline at::Tensor zero_doubles(at::IntArrayRef shape, const at::Tensor& z) {
  return at::zeros(shape, z.options().dtype(at::kDouble));
}

// v beside z. On the CPU no copy is made: v must outlive the tensor.
template <class T>
at::Tensor to_device_of(const at::Tensor& z, const std::vector<T>& v) {
  const at::Tensor host =
      at::from_blob(const_cast<T*>(v.data()), {static_cast<int64_t>(v.size())}, c10::CppTypeToScalarType<T>::value);
  return z.device().is_cpu() ? host : host.to(z.device());
}

// Waits for the device. On meta there are no numbers: zeros.
inline std::vector<double> to_host(const at::Tensor& numbers) {
  if (numbers.is_meta()) return std::vector<double>(numbers.numel(), 0.0);
  const at::Tensor host = numbers.to(at::kCPU, at::kDouble).contiguous();
  return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel()};
}

}  // namespace pal::ops
