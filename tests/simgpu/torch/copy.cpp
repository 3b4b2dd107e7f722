// copy: copy_ on CUDA tensors: by cudaMemcpyAsync where LibTorch uses it, else by the fallback.
//
// Reference: aten/src/ATen/native/cuda/Copy.cu. A copy that does not block records the pinned block's event, so that
// the pool gives the block out again only after the stream has read it.
#include <ATen/Dispatch.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/Copy.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "tests/simgpu/runtime/counters.h"
#include "tests/simgpu/runtime/stand_in.h"
#include "tests/simgpu/torch/host_copy.h"
#include "tests/simgpu/torch/pinned.h"

namespace {

bool by_one_copy(const at::TensorIterator& iter) { return iter.dtype(0) == iter.dtype(1) && iter.is_contiguous(); }

// Another type or another layout: LibTorch launches a kernel.
void on_device(const at::Tensor& to, const at::Tensor& from) {
  simgpu_count(static_cast<int>(simgpu::Count::op), "copy_", 0);
  const simgpu::Quiet quiet;
  const at::Tensor result = simgpu::host_clone(to);
  result.copy_(simgpu::host_view(from));
  simgpu::write_in_stream(to, result);
}

// Between host and device with a change of type or layout: in two steps, one of which is a plain copy.
void by_steps(at::TensorIterator& iter, bool non_blocking) {
  const at::Tensor to = iter.tensor(0), from = iter.tensor(1);
  const bool convert_at_source = from.is_cuda() == non_blocking;
  if (convert_at_source) {
    const at::Tensor dense = to.is_contiguous() ? to : at::empty_like(to, at::MemoryFormat::Contiguous);
    dense.copy_(from.to(to.scalar_type()).expand_as(to).contiguous(), non_blocking);
    if (!dense.is_same(to)) to.copy_(dense, non_blocking);
    return;
  }
  const bool same_type = to.scalar_type() == from.scalar_type();
  const at::Tensor dense = to.is_contiguous() && same_type ? to
                                                           : at::empty_like(to, to.options().dtype(from.scalar_type()),
                                                                            at::MemoryFormat::Contiguous);
  dense.copy_(from.expand_as(to).contiguous(), non_blocking);
  if (!dense.is_same(to)) to.copy_(dense, non_blocking);
}

void copy_kernel(at::TensorIterator& iter, bool non_blocking) {
  const at::Device to = iter.device(0), from = iter.device(1);
  const bool both = to.is_cuda() && from.is_cuda();
  if (both && !by_one_copy(iter)) return on_device(iter.tensor(0), iter.tensor(1));
  if (!both && !by_one_copy(iter)) return by_steps(iter, non_blocking);
  const c10::cuda::CUDAGuard guard(to.is_cuda() ? to : from);
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
  const auto bytes = static_cast<size_t>(iter.numel()) * iter.element_size(0);
  const cudaMemcpyKind kind = both           ? cudaMemcpyDeviceToDevice
                              : to.is_cuda() ? cudaMemcpyHostToDevice
                                             : cudaMemcpyDeviceToHost;
  C10_CUDA_CHECK(cudaMemcpyAsync(iter.data_ptr(0), iter.data_ptr(1), bytes, kind, stream));
  if (both) return;
  if (!non_blocking) {
    C10_CUDA_CHECK(cudaStreamSynchronize(stream));
    return;
  }
  const int host = to.is_cuda() ? 1 : 0;
  simgpu::pinned_memory().record_event(iter.data_ptr(host), iter.tensor(host).storage().data_ptr().get_context(),
                                       stream.unwrap());
}

}  // namespace

namespace at::native {
REGISTER_CUDA_DISPATCH(copy_stub, &copy_kernel)
}
