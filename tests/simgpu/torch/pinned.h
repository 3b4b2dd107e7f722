// pinned: LibTorch's pool of pinned host memory over cudaHostAlloc.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

namespace simgpu {

at::HostAllocator& pinned_memory();

}  // namespace simgpu
