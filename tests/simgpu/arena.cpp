#include "tests/simgpu/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace simgpu {

Arena::Arena() {
  file_ = memfd_create("simgpu", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(kBytes)) != 0) throw std::bad_alloc();
  void* both = mmap(nullptr, 2 * kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (both == MAP_FAILED) throw std::bad_alloc();
  begin_ = reinterpret_cast<uintptr_t>(both);
  void* open = mmap(static_cast<char*>(both) + kBytes, kBytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file_, 0);
  if (open == MAP_FAILED) throw std::bad_alloc();
}

Arena::~Arena() {
  if (begin_ != 0) munmap(reinterpret_cast<void*>(begin_), 2 * kBytes);
  if (file_ >= 0) close(file_);
}

void* Arena::allocate(size_t bytes, size_t alignment) {
  const size_t begin = (used_ + alignment - 1) / alignment * alignment;
  if (bytes > kBytes - begin) return nullptr;
  used_ = begin + bytes;
  return reinterpret_cast<void*>(begin_ + begin);
}

void Arena::release(const void* begin, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t offset = reinterpret_cast<uintptr_t>(begin) - begin_;
  const size_t first = (offset + page - 1) / page * page, end = (offset + bytes) / page * page;
  if (first < end) {
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
              static_cast<off_t>(end - first));
  }
}

}  // namespace simgpu
