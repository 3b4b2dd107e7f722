// storage_ops: the operators that make, resize and share device memory. They cannot run on the CPU instead.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>

#include "tests/simgpu/runtime/stand_in.h"

namespace {

using Ints = at::IntArrayRef;

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::CUDA);

// "cuda" without a number means the current device.
std::optional<at::Device> numbered(std::optional<at::Device> device) {
  return device && device->has_index() ? device : std::nullopt;
}

at::Tensor empty(Ints size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  at::globalContext().lazyInitDevice(at::kCUDA);
  const c10::cuda::OptionalCUDAGuard guard(numbered(device));
  return at::Tensor(at::detail::empty_generic(size, c10::cuda::CUDACachingAllocator::get(), kKeys,
                                              c10::dtype_or_default(type), format));
}

at::Tensor empty_strided(Ints size, Ints stride, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                         std::optional<at::Device> device, std::optional<bool>) {
  at::globalContext().lazyInitDevice(at::kCUDA);
  const c10::cuda::OptionalCUDAGuard guard(numbered(device));
  return at::Tensor(at::detail::empty_strided_generic(size, stride, c10::cuda::CUDACachingAllocator::get(), kKeys,
                                                      c10::dtype_or_default(type)));
}

void grow(c10::StorageImpl& storage, size_t bytes) {
  const c10::cuda::CUDAGuard guard(storage.device());
  at::DataPtr data = c10::cuda::CUDACachingAllocator::get()->allocate(bytes);
  if (storage.nbytes() > 0) {
    const simgpu::Quiet quiet;
    C10_CUDA_CHECK(cudaMemcpyAsync(data.get(), storage.data(), storage.nbytes(), cudaMemcpyDeviceToDevice,
                                   c10::cuda::getCurrentCUDAStream()));
  }
  storage.set_data_ptr_noswap(std::move(data));
  storage.set_nbytes(bytes);
}

const at::Tensor& resize(const at::Tensor& self, Ints size, std::optional<at::MemoryFormat> format) {
  at::TensorImpl* impl = self.unsafeGetTensorImpl();
  if (impl->sizes() != size) impl->set_sizes_contiguous(size);
  if (format) impl->empty_tensor_restride(*format);
  const size_t bytes =
      at::detail::computeStorageNbytes(impl->sizes(), impl->strides(), impl->itemsize(), impl->storage_offset());
  if (bytes > impl->storage().nbytes()) grow(*impl->storage().unsafeGetStorageImpl(), bytes);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, Ints size, Ints stride) {
  at::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_sizes_and_strides(size, stride);
  impl->set_storage_offset(offset);
  return self;
}

void record_stream(at::Tensor& self, at::Stream stream) {
  c10::cuda::CUDACachingAllocator::recordStream(self.storage().data_ptr(), c10::cuda::CUDAStream(stream));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("resize_", TORCH_FN(resize));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("record_stream", TORCH_FN(record_stream));
}
