// copies: memory copies and fills in a stream.
//
// When the host's side is read and written (Reference: "API synchronization behavior" in the CUDA Runtime manual):
//   pageable → device   read before the call returns; written in stream order, also by the blocking call
//   pinned → device     blocking: done on return; async: read and written in stream order
//   device → pageable   done on return
//   device → pinned     blocking: done on return; async: in stream order
//   device → device, fills   in stream order, also by the blocking calls
//   host → host         done on return
#pragma once

#include "tests/simgpu/runtime/device.h"

namespace simgpu {

struct Copy {
  void* to = nullptr;
  size_t to_pitch = 0;
  const void* from = nullptr;
  size_t from_pitch = 0;
  size_t width = 0, height = 1;  // bytes, rows
};
inline Copy line(void* to, const void* from, size_t bytes) { return {to, bytes, from, bytes, bytes, 1}; }

struct Fill {
  void* to = nullptr;
  size_t pitch = 0;
  int value = 0;
  size_t width = 0, height = 1;
};

enum class Return { when_done, at_once };

// cudaErrorInvalidValue, with a sentence on stderr, when an address and `kind` do not fit; memory that is gone by the
// time the copy is made is a sticky cudaErrorIllegalAddress.
cudaError_t copy(Device& device, const Copy& copy, cudaMemcpyKind kind, Return when, cudaStream_t stream);
cudaError_t fill(Device& device, const Fill& fill, cudaStream_t stream);

}  // namespace simgpu
