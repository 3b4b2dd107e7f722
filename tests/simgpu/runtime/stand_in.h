// stand_in: functions of the CUDA runtime's stand-in for the other stand-ins (LibTorch's, NCCL's, nvJPEG's).
//
// C functions, because each stand-in is a library of its own. The product does not call them.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

// Where a stand-in may touch what the program names by this address (arena.h).
uintptr_t simgpu_host_address(uintptr_t address);
// Whether this process works on the device, or tried to.
int simgpu_has_context(int device);
// counters.h: kind is a Count.
int simgpu_counts(void);
void simgpu_count(int kind, const char* what, size_t bytes);
// +1: what this thread does from now on is not counted; -1: the end of that.
void simgpu_quiet(int change);
}

namespace simgpu {

template <class T>
T* host_address(T* address) {
  return reinterpret_cast<T*>(simgpu_host_address(reinterpret_cast<uintptr_t>(address)));
}

struct Quiet {
  Quiet() { simgpu_quiet(1); }
  ~Quiet() { simgpu_quiet(-1); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
};

}  // namespace simgpu
