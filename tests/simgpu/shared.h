// shared: a block's shared memory, and which of its bytes were ever written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace simgpu {

class SharedMemory {
 public:
  explicit SharedMemory(size_t bytes) : bytes_(bytes), written_(bytes) {}
  // As a new block finds it: nothing written.
  void forget();
  size_t size() const { return bytes_.size(); }
  std::byte* data() { return bytes_.data(); }
  bool was_written(size_t offset, size_t bytes) const;
  void mark_written(size_t offset, size_t bytes);

 private:
  std::vector<std::byte> bytes_;
  std::vector<uint8_t> written_;  // 1 for a byte that was written
};

}  // namespace simgpu
