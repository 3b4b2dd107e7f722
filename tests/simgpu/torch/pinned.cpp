#include "tests/simgpu/torch/pinned.h"

#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

namespace simgpu {
namespace {

using Event = std::unique_ptr<c10::cuda::CUDAEvent>;
using Block = at::HostBlock<c10::cuda::CUDAStream>;

// As LibTorch's own: a freed block is used again once the streams that read it have passed.
struct PinnedImpl : at::CachingHostAllocatorImpl<c10::cuda::CUDAStream, Event> {
 private:
  void allocate_host_memory(size_t size, void** out) override {
    // Of the device that the process works on: a loader's thread has chosen none.
    const c10::cuda::OptionalCUDAGuard guard(c10::cuda::getDeviceIndexWithPrimaryContext());
    C10_CUDA_CHECK(cudaHostAlloc(out, size, cudaHostAllocDefault));
  }
  void free_block(Block* block) override { C10_CUDA_CHECK(cudaFreeHost(block->ptr_)); }
  void record_stream(std::optional<std::vector<Event>>& events, c10::cuda::CUDAStream stream) override {
    auto event = std::make_unique<c10::cuda::CUDAEvent>(cudaEventDisableTiming);
    event->record(stream);
    events->push_back(std::move(event));
  }
  bool query_event(Event& event) override { return event->query(); }
  c10::cuda::CUDAStream get_current_stream() const override { return c10::cuda::getCurrentCUDAStream(); }
  bool stream_is_capturing(c10::cuda::CUDAStream) const override { return false; }
};

void free_pinned(void* context);

struct Pinned final : at::CachingHostAllocatorInterface<PinnedImpl, free_pinned> {
  at::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
};

Pinned& pool() {
  static Pinned* const made = new Pinned;
  return *made;
}

void free_pinned(void* context) { pool().free(context); }

}  // namespace

at::HostAllocator& pinned_memory() { return pool(); }

}  // namespace simgpu
