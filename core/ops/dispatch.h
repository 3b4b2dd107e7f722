// dispatch: runs an op on tensors as its CPU or its CUDA implementation, by device; private to core/ops.
//
// On the meta device the tensors are checked and nothing runs. So tests follow a criterion without a GPU and find
// tensors on the wrong device.
#pragma once

#include <initializer_list>
#include <string>

#include "core/ops/tensor_view.h"
#include "kernels/base/cuda.h"

#ifdef PAL_WITH_CUDA
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace pal::ops {

// Undefined tensors are optional arguments; they are skipped.
inline void check_same_device(const char* op, const at::Tensor& first, std::initializer_list<at::Tensor> others) {
  for (const at::Tensor& t : others) {
    PAL_ASSERT(!t.defined() || t.device() == first.device(),
               std::string(op) + ": a tensor on " + t.device().str() + " beside one on " + first.device().str());
  }
}

// Calls cpu(Cpu) or cuda(stream), by the device of `first`, for an op on fp64 tensors. `others` are all other tensors
// of the op. The stream is the current one of that device. cuda takes it as `auto`, so that builds without CUDA skip
// it.
template <class OnCpu, class OnCuda>
void dispatch_doubles(const char* op, const at::Tensor& first, std::initializer_list<at::Tensor> others, int threads,
                      const OnCpu& cpu, [[maybe_unused]] const OnCuda& cuda) {
  check_same_device(op, first, others);
  if (first.is_meta()) return;
  if (first.device().is_cpu()) return cpu(kernels::Cpu{threads});
#ifdef PAL_WITH_CUDA
  PAL_ASSERT(first.device().is_cuda(), std::string(op) + ": tensors lie on the CPU or a CUDA device");
  const c10::cuda::CUDAGuard guard(first.device());
  cuda(c10::cuda::getCurrentCUDAStream().stream());
#else
  PAL_CHECK(false, std::string(op) + " on", first.device().str(), "build with -DPAL_CUDA=ON, or run on the CPU");
#endif
}

// Calls cpu(float or double, Cpu) or cuda(float or kernels::bf16, stream), by the device and the type of z.
template <class OnCpu, class OnCuda>
void dispatch(const char* op, const at::Tensor& z, std::initializer_list<at::Tensor> others, int threads,
              const OnCpu& cpu, const OnCuda& cuda) {
  dispatch_doubles(
      op, z, others, threads, [&](kernels::Cpu how) { by_type(z, [&](auto t) { cpu(t, how); }); },
      [&](auto stream) {
        const at::ScalarType type = z.scalar_type();
        PAL_ASSERT(type == at::kFloat || type == at::kBFloat16, std::string(op) + ": float32 or bfloat16 on CUDA");
        type == at::kFloat ? cuda(float{}, stream) : cuda(kernels::bf16{}, stream);
      });
}

// A view of a tensor that may be undefined or on meta.
template <class T>
kernels::MatrixView<T> maybe_matrix(const at::Tensor& t) {
  return t.defined() && !t.is_meta() ? matrix_view<T>(t) : kernels::MatrixView<T>{};
}
template <class T>
kernels::Span<T> maybe_span(const at::Tensor& t) {
  return t.defined() && !t.is_meta() ? span<T>(t) : kernels::Span<T>{};
}
// The pointer to one output number; null if undefined.
inline double* number(const at::Tensor& t) { return t.defined() ? t.data_ptr<double>() : nullptr; }

}  // namespace pal::ops
