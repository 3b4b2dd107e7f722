// lanes: how a handler walks the 32 lanes of its operands.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "tests/simgpu/program.h"
#include "tests/simgpu/warp.h"

namespace simgpu {

// f16 and bf16 as their bits; half.h computes with them.
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
template <class H>
struct Pair {  // f16x2, bf16x2: the lower half first
  H low, high;
};

// A register's slot for a value of type T.
template <class T>
using Slot = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
T from_slot(Slot<T> slot) {
  if constexpr (sizeof(T) == sizeof(Slot<T>)) {
    return std::bit_cast<T>(slot);
  } else if constexpr (sizeof(T) == 2) {
    return std::bit_cast<T>(static_cast<uint16_t>(slot));
  } else {
    return std::bit_cast<T>(static_cast<uint8_t>(slot));
  }
}

// Narrow values fill the slot by their sign.
template <class T>
Slot<T> to_slot(T value) {
  if constexpr (sizeof(T) == sizeof(Slot<T>)) {
    return std::bit_cast<Slot<T>>(value);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<Slot<T>>(value);
  } else {
    return std::bit_cast<uint16_t>(value);
  }
}

// r[0] = Op::run(r[1], r[2], ...), lane by lane; written for the vectorizer. Lanes outside the mask are computed and
// dropped, so Op::run must take any value.
template <class Op, class... A>
void map_lanes(Warp& warp, const Instruction& in, uint32_t mask) {
  using R = decltype(Op::run(A{}...));
  auto* result = warp.slots<Slot<R>>(in.r[0]);
  const auto body = [&]<size_t... I>(std::index_sequence<I...>) {
    const auto sources = std::make_tuple(warp.slots<Slot<A>>(in.r[I + 1])...);
    if (mask == kAllLanes) {
#pragma GCC ivdep
      for (int lane = 0; lane < kLanes; ++lane)
        result[lane] = to_slot<R>(Op::run(from_slot<A>(std::get<I>(sources)[lane])...));
    } else {
#pragma GCC ivdep
      for (int lane = 0; lane < kLanes; ++lane) {
        const Slot<R> value = to_slot<R>(Op::run(from_slot<A>(std::get<I>(sources)[lane])...));
        result[lane] = (mask >> lane & 1) != 0 ? value : result[lane];
      }
    }
  };
  body(std::index_sequence_for<A...>());
}

// f(lane) for each lane of the mask, in order.
template <class F>
void for_active(uint32_t mask, const F& f) {
  for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
}

// The same as map_lanes for what is costly or not defined everywhere: only lanes of the mask.
template <class Op, class... A>
void map_active(Warp& warp, const Instruction& in, uint32_t mask) {
  using R = decltype(Op::run(A{}...));
  auto* result = warp.slots<Slot<R>>(in.r[0]);
  const auto body = [&]<size_t... I>(std::index_sequence<I...>) {
    for_active(mask, [&](int lane) {
      result[lane] = to_slot<R>(Op::run(from_slot<A>(warp.slots<Slot<A>>(in.r[I + 1])[lane])...));
    });
  };
  body(std::index_sequence_for<A...>());
}

// The lanes for which test(lane) holds, as a mask; computed for all lanes.
template <class F>
uint32_t mask_of(const F& test) {
  uint32_t bits = 0;
  for (int lane = 0; lane < kLanes; ++lane) bits |= static_cast<uint32_t>(test(lane)) << lane;
  return bits;
}

inline void set_predicate(uint32_t& predicate, uint32_t bits, uint32_t mask) {
  predicate = (predicate & ~mask) | (bits & mask);
}

}  // namespace simgpu
