// ops_atomic: atom and red. Lanes take effect one after another, in the order of their numbers.
#include <cstring>
#include <limits>

#include "tests/simgpu/access.h"
#include "tests/simgpu/block.h"
#include "tests/simgpu/decoder.h"
#include "tests/simgpu/half.h"
#include "tests/simgpu/lanes.h"
#include "tests/simgpu/select.h"

namespace simgpu {
namespace {

struct Add {
  template <class T>
  static T run(T old, T b, T) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(b));
    else
      return old + b;
  }
  template <class H>
  static H add_half(H a, H b) {
    return narrow<H>(double{widen(a)} + double{widen(b)});
  }
  static Half run(Half old, Half b, Half) { return add_half(old, b); }
  static BFloat run(BFloat old, BFloat b, BFloat) { return add_half(old, b); }
  template <class H>
  static Pair<H> run(Pair<H> old, Pair<H> b, Pair<H>) {
    return {add_half(old.low, b.low), add_half(old.high, b.high)};
  }
};
struct Min {
  template <class T>
  static T run(T old, T b, T) {
    return b < old ? b : old;
  }
};
struct Max {
  template <class T>
  static T run(T old, T b, T) {
    return b > old ? b : old;
  }
};
struct And {
  template <class T>
  static T run(T old, T b, T) {
    return old & b;
  }
};
struct Or {
  template <class T>
  static T run(T old, T b, T) {
    return old | b;
  }
};
struct Xor {
  template <class T>
  static T run(T old, T b, T) {
    return old ^ b;
  }
};
struct Exch {
  template <class T>
  static T run(T, T b, T) {
    return b;
  }
};
struct Cas {
  template <class T>
  static T run(T old, T b, T c) {
    return old == b ? c : old;
  }
};
struct Inc {
  static uint32_t run(uint32_t old, uint32_t b, uint32_t) { return old >= b ? 0 : old + 1; }
};
struct Dec {
  static uint32_t run(uint32_t old, uint32_t b, uint32_t) { return old == 0 || old > b ? b : old - 1; }
};

// r[0] = what was there; there = Op(what was there, r[1], r[2])
template <class Op, class T>
void run_atomic(Warp& warp, const Instruction& in, uint32_t mask) {
  Reach read, reach;
  resolve(warp, in, mask, sizeof(T), Access::read, read);
  resolve(warp, in, mask, sizeof(T), Access::write, reach);
  auto* result = warp.slots<Slot<T>>(in.r[0]);
  const auto *b = warp.slots<Slot<T>>(in.r[1]), *c = warp.slots<Slot<T>>(in.r[2]);
  for_active(mask, [&](int lane) {
    T old;
    std::memcpy(&old, reach.lane[lane], sizeof(T));
    const T value = Op::run(old, from_slot<T>(b[lane]), from_slot<T>(c[lane]));
    if (RaceDetector* race = warp.block().race(); race != nullptr && (reach.shared >> lane & 1) != 0) {
      race->write(warp, in, lane, static_cast<size_t>(reach.lane[lane] - warp.block().shared().data()), sizeof(T),
                  Strength::strong, nullptr);
    }
    std::memcpy(reach.lane[lane], &value, sizeof(T));
    result[lane] = to_slot<T>(old);
  });
}

template <class Op>
Handler of_integers(Type type) {
  switch (type) {
    case Type::u32:
      return run_atomic<Op, uint32_t>;
    case Type::s32:
      return run_atomic<Op, int32_t>;
    case Type::u64:
      return run_atomic<Op, uint64_t>;
    case Type::s64:
      return run_atomic<Op, int64_t>;
    default:
      return nullptr;
  }
}
template <class Op>
Handler of_bits(Type type) {
  switch (type) {
    case Type::b16:
      return std::is_same_v<Op, Cas> ? run_atomic<Cas, uint16_t> : nullptr;
    case Type::b32:
      return run_atomic<Op, uint32_t>;
    case Type::b64:
      return run_atomic<Op, uint64_t>;
    default:
      return nullptr;
  }
}

Handler choose_add(Opcode& op, Type type) {
  switch (type) {
    case Type::f32:
      return run_atomic<Add, float>;
    case Type::f64:
      return run_atomic<Add, double>;
    case Type::f16:
      return op.take("noftz") ? run_atomic<Add, Half> : nullptr;
    case Type::bf16:
      return op.take("noftz") ? run_atomic<Add, BFloat> : nullptr;
    case Type::f16x2:
      return op.take("noftz") ? run_atomic<Add, Pair<Half>> : nullptr;
    case Type::bf16x2:
      return op.take("noftz") ? run_atomic<Add, Pair<BFloat>> : nullptr;
    default:
      return of_integers<Add>(type);
  }
}

Handler choose(Opcode& op, Type type) {
  if (op.take("add")) return choose_add(op, type);
  if (op.take("min")) return of_integers<Min>(type);
  if (op.take("max")) return of_integers<Max>(type);
  if (op.take("inc")) return type == Type::u32 ? run_atomic<Inc, uint32_t> : nullptr;
  if (op.take("dec")) return type == Type::u32 ? run_atomic<Dec, uint32_t> : nullptr;
  if (op.take("and")) return of_bits<And>(type);
  if (op.take("or")) return of_bits<Or>(type);
  if (op.take("xor")) return of_bits<Xor>(type);
  if (op.take("exch")) return of_bits<Exch>(type);
  if (op.take("cas")) return of_bits<Cas>(type);
  return nullptr;
}

}  // namespace

bool decode_atomic(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  if (!op.is({"atom", "red"})) return false;
  const Type type = op.take_type();
  StateSpace space = StateSpace::generic;
  if (op.take("global")) space = StateSpace::global;
  if (op.take("shared") || op.take("shared::cta")) space = StateSpace::shared;
  op.take_one({"relaxed", "acquire", "release", "acq_rel"});
  op.take_one({"cta", "cluster", "gpu", "sys"});
  const bool swaps = op.has("cas"), returns = op.is({"atom"});
  const Handler run = choose(op, type);
  const size_t first = returns ? 1 : 0;
  if (run == nullptr || in.operands.size() != first + (swaps ? 3 : 2))
    d.fail("unknown form of " + std::string(in.opcode));
  const uint32_t b = d.source(in.operands[first + 1], type), c = swaps ? d.source(in.operands[first + 2], type) : b;
  Instruction fields;
  d.address(in.operands[first], fields);
  Instruction& out =
      d.emit(run, {returns ? d.result(in.operands[0], type) : d.temporary(type), b, c, 0, fields.r[kAddress]});
  out.value = fields.value;
  out.narrow_address = fields.narrow_address;
  out.modifier = static_cast<uint8_t>(static_cast<uint8_t>(space) | kStrongBit);
  return true;
}

}  // namespace simgpu
