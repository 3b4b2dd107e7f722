// shared: one flag per byte.
#include "tests/simgpu/shared.h"

#include <cstring>

#include "tests/simgpu/memory.h"

namespace simgpu {

void SharedMemory::forget() {
  if (bytes_.empty()) return;
  std::memset(bytes_.data(), kFresh, bytes_.size());
  std::memset(written_.data(), 0, written_.size());
}

bool SharedMemory::was_written(size_t offset, size_t bytes) const {
  size_t i = 0;
  for (; i + 4 <= bytes; i += 4) {
    uint32_t flags;
    std::memcpy(&flags, &written_[offset + i], 4);
    if (flags != 0x01010101u) return false;
  }
  for (; i < bytes; ++i) {
    if (written_[offset + i] == 0) return false;
  }
  return true;
}

void SharedMemory::mark_written(size_t offset, size_t bytes) { std::memset(&written_[offset], 1, bytes); }

}  // namespace simgpu
