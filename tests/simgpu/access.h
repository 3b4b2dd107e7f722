// access: addresses of a load, store or atomic, checked and turned into host pointers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/simgpu/memory.h"
#include "tests/simgpu/program.h"
#include "tests/simgpu/race.h"

namespace simgpu {

enum class StateSpace : uint8_t { generic, global, shared, local, param };

// Instruction::modifier of what accesses memory.
inline constexpr uint8_t kStrongBit = 0x80;
inline StateSpace space_of(const Instruction& in) { return static_cast<StateSpace>(in.modifier & 0x0f); }
inline Strength strength_of(const Instruction& in) {
  return (in.modifier & kStrongBit) != 0 ? Strength::strong : Strength::weak;
}

// Where each lane of the mask accesses.
struct Reach {
  std::byte* lane[kLanes];
  uint32_t shared = 0;  // the lanes among them that access shared memory
};

// Throws Fault if an address is misaligned or in no allocation, or if shared memory is read before it is written.
// Shared memory that is to be written counts as written from here on.
void resolve(Warp& warp, const Instruction& in, uint32_t mask, size_t bytes, Access access, Reach& reach);
// A C string or a value at a generic address, for printf.
std::byte* resolve_one(Warp& warp, const Instruction& in, int lane, uint64_t address, size_t bytes);

}  // namespace simgpu
