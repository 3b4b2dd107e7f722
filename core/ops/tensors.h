// tensors: helpers for the callers of core/ops: numbers and index lists on the device of z.
//
// Async: a number that an op computes (a value, a term) is a fp64 tensor of one element on z's device. The host waits
//   for the GPU only when to_host reads all of them.
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

// v on the device of z. On the CPU the tensor aliases v, which must outlive it.
template <class T>
at::Tensor to_device_of(const at::Tensor& z, const std::vector<T>& v) {
  const at::Tensor host =
      at::from_blob(const_cast<T*>(v.data()), {static_cast<int64_t>(v.size())}, c10::CppTypeToScalarType<T>::value);
  return z.device().is_cpu() ? host : host.to(z.device());
}

// Waits for the device. Returns zeros for a meta tensor.
inline std::vector<double> to_host(const at::Tensor& numbers) {
  if (numbers.is_meta()) return std::vector<double>(numbers.numel(), 0.0);
  const at::Tensor host = numbers.to(at::kCPU, at::kDouble).contiguous();
  return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel()};
}

}  // namespace pal::ops
