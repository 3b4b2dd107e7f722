// access: checks per space. Global memory is checked once for all lanes where they share an allocation.
#include "tests/simgpu/access.h"

#include <algorithm>
#include <bit>
#include <string>

#include "tests/simgpu/block.h"
#include "tests/simgpu/lanes.h"
#include "tests/simgpu/window.h"

namespace simgpu {
namespace {

struct Request {
  Warp& warp;
  const Instruction& in;
  size_t bytes;
  Access access;
};

const char* verb(Access access) { return access == Access::read ? "read" : "write"; }

void check_alignment(const Request& q, int lane, uint64_t address) {
  if ((address & (q.bytes - 1)) == 0) return;
  q.warp.fail(FaultKind::misaligned_address,
              std::string(verb(q.access)) + " of " + std::to_string(q.bytes) + " bytes at an address that is " +
                  std::to_string(address % q.bytes) + " past a multiple of them",
              q.in, lane);
}

void check_global(const Request& q, int lane, uint64_t address) {
  Block& block = q.warp.block();
  if (block.known(address, address + q.bytes, q.access)) return;
  const std::string refusal = block.memory().refusal(reinterpret_cast<const void*>(address), q.bytes, q.access);
  if (!refusal.empty()) q.warp.fail(FaultKind::illegal_address, refusal, q.in, lane);
  block.learn(address, q.access);
}

void to_global(const Request& q, uint32_t mask, const uint64_t (&address)[kLanes], Reach& reach) {
  uint64_t low = address[std::countr_zero(mask)], high = low, all = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint64_t a = (mask >> lane & 1) != 0 ? address[lane] : low;
    low = std::min(low, a);
    high = std::max(high, a);
    all |= a;
  }
  if ((all & (q.bytes - 1)) != 0) for_active(mask, [&](int lane) { check_alignment(q, lane, address[lane]); });
  if (!q.warp.block().known(low, high + q.bytes, q.access))
    for_active(mask, [&](int lane) { check_global(q, lane, address[lane]); });
  const Memory& memory = q.warp.block().memory();
  for (int lane = 0; lane < kLanes; ++lane) reach.lane[lane] = reinterpret_cast<std::byte*>(memory.host(address[lane]));
}

[[noreturn]] void outside(const Request& q, int lane, uint64_t offset, const char* what, size_t size) {
  q.warp.fail(FaultKind::illegal_address,
              std::string(verb(q.access)) + " of " + std::to_string(q.bytes) + " bytes at offset " +
                  std::to_string(static_cast<int64_t>(offset)) + " of " + what + ", which has " + std::to_string(size) +
                  " bytes",
              q.in, lane);
}

bool fits(const Request& q, uint64_t offset, size_t size) { return offset < size && q.bytes <= size - offset; }

void to_shared(const Request& q, uint32_t mask, const uint64_t (&offset)[kLanes], Reach& reach) {
  SharedMemory& shared = q.warp.block().shared();
  RaceDetector* race = q.warp.block().race();
  for_active(mask, [&](int lane) {
    const uint64_t at = offset[lane];
    check_alignment(q, lane, at);
    if (!fits(q, at, shared.size())) outside(q, lane, at, "shared memory", shared.size());
    reach.lane[lane] = shared.data() + at;
    if (q.access == Access::write) {
      shared.mark_written(at, q.bytes);
      return;
    }
    if (!shared.was_written(at, q.bytes)) {
      q.warp.fail(FaultKind::uninitialized,
                  "read of " + std::to_string(q.bytes) + " bytes at offset " + std::to_string(at) +
                      " of shared memory that no thread has written",
                  q.in, lane);
    }
    if (race != nullptr) race->read(q.warp, q.in, lane, at, q.bytes, strength_of(q.in));
  });
  reach.shared |= mask;
}

void to_local(const Request& q, uint32_t mask, const uint64_t (&offset)[kLanes], Reach& reach) {
  Block& block = q.warp.block();
  for_active(mask, [&](int lane) {
    check_alignment(q, lane, offset[lane]);
    if (!fits(q, offset[lane], block.kernel().local_bytes))
      outside(q, lane, offset[lane], "the thread's local memory", block.kernel().local_bytes);
    reach.lane[lane] = block.local(q.warp.thread(lane)) + offset[lane];
  });
}

void to_param(const Request& q, uint32_t mask, const uint64_t (&address)[kLanes], Reach& reach) {
  Block& block = q.warp.block();
  for_active(mask, [&](int lane) {
    const uint64_t offset = address[lane] - kParamWindow;
    check_alignment(q, lane, offset);
    if (q.access == Access::write) q.warp.fail(FaultKind::illegal_address, "write to a kernel parameter", q.in, lane);
    if (!fits(q, offset, block.kernel().parameter_bytes))
      outside(q, lane, offset, "the kernel's parameters", block.kernel().parameter_bytes);
    reach.lane[lane] = const_cast<std::byte*>(block.parameters()) + offset;
  });
}

void to_generic(const Request& q, uint32_t mask, const uint64_t (&address)[kLanes], Reach& reach) {
  uint64_t offset[kLanes];
  const auto lanes_in = [&](uint64_t window) {
    return mask & mask_of([&](int lane) { return in_window(address[lane], window); });
  };
  const auto offsets_from = [&](uint64_t window) {
    for (int lane = 0; lane < kLanes; ++lane) offset[lane] = address[lane] - window;
  };
  const uint32_t shared = lanes_in(kSharedWindow), local = lanes_in(kLocalWindow), param = lanes_in(kParamWindow);
  const uint32_t global = mask & ~(shared | local | param);
  if (global != 0) to_global(q, global, address, reach);
  if (shared != 0) {
    offsets_from(kSharedWindow);
    to_shared(q, shared, offset, reach);
  }
  if (local != 0) {
    offsets_from(kLocalWindow);
    to_local(q, local, offset, reach);
  }
  if (param != 0) to_param(q, param, address, reach);
}

}  // namespace

void resolve(Warp& warp, const Instruction& in, uint32_t mask, size_t bytes, Access access, Reach& reach) {
  uint64_t address[kLanes];
  const auto offset = static_cast<uint64_t>(in.value);
  if (in.narrow_address) {
    const uint32_t* base = warp.slots<uint32_t>(in.r[kAddress]);
    for (int lane = 0; lane < kLanes; ++lane) address[lane] = static_cast<uint32_t>(base[lane] + offset);
  } else {
    const uint64_t* base = warp.slots<uint64_t>(in.r[kAddress]);
    for (int lane = 0; lane < kLanes; ++lane) address[lane] = base[lane] + offset;
  }
  const Request q{warp, in, bytes, access};
  switch (space_of(in)) {
    case StateSpace::generic:
      return to_generic(q, mask, address, reach);
    case StateSpace::global:
      return to_global(q, mask, address, reach);
    case StateSpace::shared:
      return to_shared(q, mask, address, reach);
    case StateSpace::local:
      return to_local(q, mask, address, reach);
    case StateSpace::param:
      return to_param(q, mask, address, reach);
  }
}

std::byte* resolve_one(Warp& warp, const Instruction& in, int lane, uint64_t address, size_t bytes) {
  uint64_t addresses[kLanes] = {};
  addresses[lane] = address;
  Reach reach;
  to_generic({warp, in, bytes, Access::read}, 1u << lane, addresses, reach);
  return reach.lane[lane];
}

}  // namespace simgpu
