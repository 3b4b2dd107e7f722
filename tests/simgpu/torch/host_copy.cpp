#include "tests/simgpu/torch/host_copy.h"

#include <ATen/ops/empty_strided.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "tests/simgpu/runtime/stand_in.h"

namespace simgpu {
namespace {

// Copies runs of bytes that lie together on both sides, dimension by dimension.
void write_runs(char* to, const char* from, const at::Tensor& shape, int64_t dim, int64_t dense, cudaStream_t stream) {
  const int64_t item = shape.element_size();
  if (dim == dense) {
    int64_t run = item;
    for (int64_t d = dense; d < shape.dim(); ++d) run *= shape.size(d);
    C10_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(run), cudaMemcpyHostToDevice, stream));
    return;
  }
  int64_t part = item;
  for (int64_t d = dim + 1; d < shape.dim(); ++d) part *= shape.size(d);
  for (int64_t i = 0; i < shape.size(dim); ++i)
    write_runs(to + i * shape.stride(dim) * item, from + i * part, shape, dim + 1, dense, stream);
}

}  // namespace

void wait_for_current_stream(const at::Tensor& t) {
  const c10::cuda::CUDAGuard guard(t.device());
  C10_CUDA_CHECK(cudaStreamSynchronize(c10::cuda::getCurrentCUDAStream()));
}

// On the whole storage, so that an operator may ask for bytes before and behind the tensor, as a view does.
at::Tensor host_alias(const at::Tensor& t) {
  const c10::Storage& storage = t.storage();
  void* const base = storage.nbytes() == 0 ? nullptr : host_address(storage.unsafeGetStorageImpl()->mutable_data());
  auto impl = c10::make_intrusive<at::TensorImpl>(
      c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(), at::DataPtr(base, at::kCPU), nullptr, false),
      c10::DispatchKeySet(c10::DispatchKey::CPU), t.dtype());
  impl->set_sizes_and_strides(t.sizes(), t.strides());
  impl->set_storage_offset(t.storage_offset());
  if (t.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return at::Tensor(std::move(impl));
}

at::Tensor host_view(const at::Tensor& t) {
  wait_for_current_stream(t);
  return host_alias(t);
}

at::Tensor host_clone(const at::Tensor& t) {
  const at::Tensor clone = at::empty_strided(t.sizes(), t.strides(), t.options().device(at::kCPU));
  if (t.numel() > 0) clone.copy_(host_view(t));
  return clone;
}

void write_in_stream(const at::Tensor& to, const at::Tensor& from) {
  if (to.numel() == 0) return;
  const c10::cuda::CUDAGuard guard(to.device());
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  char* const target = static_cast<char*>(to.unsafeGetTensorImpl()->mutable_data());
  if (to.is_non_overlapping_and_dense()) {
    const at::Tensor same =
        from.strides() == to.strides() ? from : at::empty_strided(to.sizes(), to.strides(), from.options()).copy_(from);
    C10_CUDA_CHECK(cudaMemcpyAsync(target, same.const_data_ptr(), to.nbytes(), cudaMemcpyHostToDevice, stream));
    return;
  }
  int64_t dense = to.dim(), expected = 1;  // dimensions from `dense` on lie together
  while (dense > 0 && to.stride(dense - 1) == expected) expected *= to.size(--dense);
  const at::Tensor rows = from.contiguous();
  write_runs(target, static_cast<const char*>(rows.const_data_ptr()), to, 0, dense, stream);
}

}  // namespace simgpu
