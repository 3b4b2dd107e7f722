// arena: device memory that the host cannot touch.
//
// Device memory lies in a memfd. The program and the kernels name a byte by an address where nothing is mapped for
// access; the stand-ins find the same byte at a constant distance from it. Host code that follows a device pointer gets
// SIGSEGV, as on a machine with a GPU, and describe_host_access() can name the mistake. An address is never used
// twice, so that a late access always reaches freed memory.
// Thread: callers serialize; at() may be called by any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu {

class Arena {
 public:
  Arena();  // throws std::bad_alloc when the system gives no address space
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(size_t bytes, size_t alignment);  // nullptr: the address space is used up
  void release(const void* begin, size_t bytes);   // gives back the whole pages; the addresses stay unused

  bool holds(const void* address) const { return reinterpret_cast<uintptr_t>(address) - begin_ < kBytes; }
  // Where the stand-in touches what `address` names; an address outside of the arena is returned as it is.
  uintptr_t at(uintptr_t address) const { return address + (address - begin_ < kBytes ? kBytes : 0); }

 private:
  static constexpr size_t kBytes = size_t{1} << 40;

  int file_ = -1;
  uintptr_t begin_ = 0;
  size_t used_ = 0;
};

}  // namespace simgpu
