// scratch: pieces of the memory that a caller provides for a launcher.
//
// A launcher's Layout takes its pieces in one place: over nullptr it only counts (x_scratch_bytes), over the caller's
// memory it places them. Each piece begins on a cache line, whatever the alignment of the memory: vectors that cross
// lines would halve the speed of the products.
#pragma once

#include <cstdint>

namespace pal::kernels {

class ScratchPieces {
 public:
  explicit ScratchPieces(void* data)
      : data_(data ? reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(data) + kLine - 1) / kLine * kLine)
                   : nullptr) {}
  template <class T>
  T* take(int64_t count) {
    T* piece = data_ ? reinterpret_cast<T*>(data_ + used_) : nullptr;
    used_ += (count * static_cast<int64_t>(sizeof(T)) + kLine - 1) / kLine * kLine;
    return piece;
  }
  // The bytes that the caller must provide: the pieces, and room to align the first.
  int64_t bytes() const { return used_ == 0 ? 0 : used_ + kLine - 1; }

 private:
  static constexpr int64_t kLine = 64;
  char* data_;
  int64_t used_ = 0;
};

}  // namespace pal::kernels
