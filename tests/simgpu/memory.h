// memory: the device's global memory: which addresses exist, which did, what fresh bytes look like.
//
// Device memory is host memory, and a device address is its host address. Fresh bytes are kFresh: NaN in every float
// type and -1 in every integer, so that what was never written is seen. Freed blocks become kFreed and stay mapped for
// a while, so that a late access can be named. Shared and local memory are not here: they live in windows of the
// address space that the host does not use (window.h).
// Thread: callers serialize.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace simgpu {

inline constexpr unsigned char kFresh = 0xff;
inline constexpr unsigned char kFreed = 0xfe;

enum class Space { device, pinned_host, managed, variable };  // variable: a module's .global or .const
enum class Access { read, write };

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
  Memory() = default;
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

  size_t live_bytes() const { return live_bytes_; }
  size_t live_allocations() const { return live_allocations_; }

 private:
  void drop_oldest_freed();

  std::map<uintptr_t, Allocation> table_;  // by begin; live and freed
  std::map<uint64_t, uintptr_t> freed_;    // by age
  uint64_t frees_ = 0;
  size_t live_bytes_ = 0, freed_bytes_ = 0, live_allocations_ = 0;
};

}  // namespace simgpu
