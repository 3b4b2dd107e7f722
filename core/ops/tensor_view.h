// tensor_view: converts tensors to the views that kernels take, and dispatches on their type.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/view.h"

namespace pal::ops {

// A tensor of two dimensions whose rows are contiguous.
template <class T>
kernels::MatrixView<T> matrix_view(const at::Tensor& t) {
  PAL_ASSERT(t.dim() == 2 && (t.size(1) <= 1 || t.stride(1) == 1) && !t.is_meta(),
             "a kernel takes rows that are contiguous");
  return {static_cast<T*>(t.data_ptr()), t.size(0), t.size(1), t.size(0) <= 1 ? t.size(1) : t.stride(0)};
}
template <class T>
kernels::Span<T> span(const at::Tensor& t) {
  PAL_ASSERT(t.is_contiguous() && !t.is_meta(), "a kernel takes contiguous numbers");
  return {static_cast<T*>(t.data_ptr()), t.numel()};
}
template <class T>
kernels::Span<const T> span_of(const std::vector<T>& v) {
  return {v.data(), static_cast<int64_t>(v.size())};
}

// Scratch memory of one kernel call, on the CPU or on the device of a tensor (on CUDA valid in stream order).
class ScratchMemory {
 public:
  explicit ScratchMemory(int64_t bytes) : memory_(at::empty({bytes}, at::kByte)) {}
  ScratchMemory(int64_t bytes, const at::Tensor& like) : memory_(at::empty({bytes}, like.options().dtype(at::kByte))) {}
  operator kernels::Scratch() const { return {memory_.data_ptr(), memory_.numel()}; }

 private:
  at::Tensor memory_;
};

// Calls f(float{}) or f(double{}) by the tensor's type.
template <class F>
auto by_type(const at::Tensor& t, const F& f) {
  PAL_ASSERT(t.scalar_type() == at::kFloat || t.scalar_type() == at::kDouble, "embeddings are float32 or float64");
  return t.scalar_type() == at::kFloat ? f(float{}) : f(double{});
}

}  // namespace pal::ops
