// memory: the device's global memory: allocated addresses, freed addresses, the content of fresh bytes.
//
// The CUDA runtime around it keeps device memory in an arena that the host cannot touch (arena.h); host() is where the
// stand-in itself finds a byte. In unit tests a device address is its host address. Fresh bytes are kFresh: NaN in
// every float type and -1 in every integer, so that a read of bytes that were never written is visible. Freed blocks
// become kFreed and stay mapped for a while, so that a late access can be named. Shared and local memory are not here:
// they live in windows of the address space that the host does not use (window.h).
// Thread: callers serialize.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tests/simgpu/arena.h"

namespace simgpu {

inline constexpr unsigned char kFresh = 0xff;
inline constexpr unsigned char kFreed = 0xfe;

enum class Space { device, pinned_host, managed, variable };  // variable: a module's .global or .const
enum class Access { read, write };
enum class HostAccess { allowed, refused };  // whether host code may touch device memory

struct Allocation {
  uintptr_t begin = 0;
  size_t bytes = 0;  // as asked for; one byte beyond is an error
  Space space = Space::device;
  bool live = true;      // false: freed, and kept to name late accesses
  bool writable = true;  // false: .const
  std::string name;      // of a variable
};

class Memory {
 public:
  explicit Memory(HostAccess host = HostAccess::allowed);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // 256-byte aligned, filled with kFresh. Zero bytes give nullptr, as cudaMalloc does. Throws std::bad_alloc.
  void* allocate(size_t bytes, Space space = Space::device, const std::string& name = {});
  // For .const variables, once their initial value is in place.
  void make_read_only(const void* begin);
  // False if this is not the beginning of a live allocation (cudaErrorInvalidValue); nullptr is fine.
  bool free(void* begin);

  // The allocation, live or freed, that holds the address; nullptr if none does.
  const Allocation* find(const void* address) const;
  // Empty if the device may access [address, address + bytes); otherwise a sentence that says why not.
  std::string refusal(const void* address, size_t bytes, Access access) const;

  // Where the stand-in touches what the program and the kernels name by `address`.
  uintptr_t host(uintptr_t address) const { return arena_ ? arena_->at(address) : address; }
  template <class T>
  T* host(T* address) const {
    return reinterpret_cast<T*>(host(reinterpret_cast<uintptr_t>(address)));
  }
  const Arena* arena() const { return arena_.get(); }  // null where the host may touch device memory

  size_t live_bytes() const { return live_bytes_; }
  size_t live_allocations() const { return live_allocations_; }

 private:
  void* take(size_t bytes, Space space);
  void drop_oldest_freed();

  std::unique_ptr<Arena> arena_;
  std::map<uintptr_t, Allocation> table_;  // by begin; live and freed
  std::map<uint64_t, uintptr_t> freed_;    // by age
  uint64_t frees_ = 0;
  size_t live_bytes_ = 0, freed_bytes_ = 0, live_allocations_ = 0;
};

}  // namespace simgpu
