// memory: the allocation table.
#include "tests/simgpu/memory.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <sstream>

namespace simgpu {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kGuard = 256;            // between allocations, so that one byte beyond is in no other
constexpr size_t kKeptFreed = 256 << 20;  // bytes of freed blocks that stay mapped

size_t with_guard(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment + kGuard; }

}  // namespace

Memory::Memory(HostAccess host) : arena_(host == HostAccess::refused ? std::make_unique<Arena>() : nullptr) {}

Memory::~Memory() {
  for (const auto& [begin, allocation] : table_) {
    if (!arena_ || !arena_->holds(reinterpret_cast<void*>(begin))) std::free(reinterpret_cast<void*>(begin));
  }
}

// Pinned and managed memory is the host's, too.
void* Memory::take(size_t bytes, Space space) {
  const bool hidden = arena_ && (space == Space::device || space == Space::variable);
  return hidden ? arena_->allocate(bytes, kAlignment) : std::aligned_alloc(kAlignment, bytes);
}

void* Memory::allocate(size_t bytes, Space space, const std::string& name) {
  if (bytes == 0) return nullptr;
  void* begin = bytes > SIZE_MAX / 2 ? nullptr : take(with_guard(bytes), space);
  if (begin == nullptr) throw std::bad_alloc();
  std::memset(host(begin), kFresh, with_guard(bytes));
  Allocation allocation;
  allocation.begin = reinterpret_cast<uintptr_t>(begin);
  allocation.bytes = bytes;
  allocation.space = space;
  allocation.name = name;
  table_[allocation.begin] = allocation;
  live_bytes_ += bytes;
  ++live_allocations_;
  return begin;
}

void Memory::make_read_only(const void* begin) { table_.at(reinterpret_cast<uintptr_t>(begin)).writable = false; }

bool Memory::free(void* begin) {
  if (begin == nullptr) return true;
  const auto found = table_.find(reinterpret_cast<uintptr_t>(begin));
  if (found == table_.end() || !found->second.live) return false;
  Allocation& allocation = found->second;
  allocation.live = false;
  std::memset(host(begin), kFreed, allocation.bytes);
  live_bytes_ -= allocation.bytes;
  --live_allocations_;
  freed_bytes_ += allocation.bytes;
  freed_[frees_++] = allocation.begin;
  while (freed_bytes_ > kKeptFreed) drop_oldest_freed();
  return true;
}

void Memory::drop_oldest_freed() {
  const auto oldest = freed_.begin();
  const auto found = table_.find(oldest->second);
  freed_bytes_ -= found->second.bytes;
  void* const begin = reinterpret_cast<void*>(found->first);
  if (arena_ && arena_->holds(begin)) {
    arena_->release(begin, with_guard(found->second.bytes));
  } else {
    std::free(begin);
  }
  table_.erase(found);
  freed_.erase(oldest);
}

const Allocation* Memory::find(const void* address) const {
  const auto a = reinterpret_cast<uintptr_t>(address);
  auto after = table_.upper_bound(a);
  if (after == table_.begin()) return nullptr;
  const Allocation& allocation = std::prev(after)->second;
  return a < allocation.begin + allocation.bytes ? &allocation : nullptr;
}

std::string Memory::refusal(const void* address, size_t bytes, Access access) const {
  const Allocation* allocation = find(address);
  const auto a = reinterpret_cast<uintptr_t>(address);
  std::ostringstream text;
  text << (access == Access::read ? "read" : "write") << " of " << bytes << " bytes at 0x" << std::hex << a << std::dec;
  if (allocation != nullptr) {
    const size_t offset = a - allocation->begin;
    const bool fits = bytes <= allocation->bytes - offset;
    if (allocation->live && fits && (access == Access::read || allocation->writable)) return {};
    text << ", " << offset << " bytes into " << (allocation->name.empty() ? "an allocation" : allocation->name)
         << " of " << allocation->bytes << " bytes";
    if (!allocation->live) {
      text << " that was freed";
    } else if (!fits) {
      text << ", passes its end";
    } else {
      text << " that is constant";
    }
    return text.str();
  }
  if (a < 4096) {
    text << ", a null pointer or an offset from one";
  } else if (const auto after = table_.upper_bound(a); after != table_.begin()) {
    const Allocation& before = std::prev(after)->second;
    text << ", in no allocation; " << a - before.begin - before.bytes << " bytes after the end of one of "
         << before.bytes << " bytes" << (before.live ? "" : " that was freed");
  } else {
    text << ", in no allocation";
  }
  return text.str();
}

}  // namespace simgpu
