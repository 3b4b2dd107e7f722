// window: where shared, local and parameter memory lie in the generic address space: below anything the host maps for
// a program of ours, and far apart, so that a stray offset from one lands in none.
#pragma once

#include <cstdint>

namespace simgpu {

inline constexpr uint64_t kSharedWindow = uint64_t{1} << 40;
inline constexpr uint64_t kLocalWindow = uint64_t{2} << 40;
inline constexpr uint64_t kParamWindow = uint64_t{3} << 40;
inline constexpr uint64_t kWindowBytes = uint64_t{1} << 32;

inline bool in_window(uint64_t address, uint64_t window) { return address - window < kWindowBytes; }

}  // namespace simgpu
