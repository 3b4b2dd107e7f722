// ops_bits: logic and shifts.
#include <algorithm>
#include <bit>

#include "tests/simgpu/decoder.h"
#include "tests/simgpu/lanes.h"
#include "tests/simgpu/select.h"

namespace simgpu {
namespace {

struct And {
  template <class T>
  static T run(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  static T run(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  static T run(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  static T run(T a) {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <class T>
  static T run(T a) {
    return a == 0;
  }
};
// A distance beyond the width shifts everything out.
struct Shl {
  template <class T>
  static T run(T a, uint32_t distance) {
    return distance < 8 * sizeof(T) ? static_cast<T>(a << distance) : T{0};
  }
};
struct Shr {
  template <class T>
  static T run(T a, uint32_t distance) {
    constexpr uint32_t width = 8 * sizeof(T);
    if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> (distance < width ? distance : width - 1));
    return distance < width ? static_cast<T>(a >> distance) : T{0};
  }
};
// 32 bits out of the 64 of b:a.
template <bool kLeft, bool kWrap>
struct Funnel {
  static uint32_t run(uint32_t a, uint32_t b, uint32_t distance) {
    const uint32_t n = kWrap ? distance & 31 : (distance < 32 ? distance : 32);
    const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
    return kLeft ? static_cast<uint32_t>(both >> (32 - n)) : static_cast<uint32_t>(both >> n);
  }
};
enum class Logic : uint8_t { logical_and, logical_or, logical_xor };
void run_predicate_logic(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint32_t a = warp.predicate(in.r[1]), b = warp.predicate(in.r[2]);
  const auto logic = static_cast<Logic>(in.modifier);
  set_predicate(warp.predicate(in.r[0]),
                logic == Logic::logical_and  ? a & b
                : logic == Logic::logical_or ? a | b
                                             : a ^ b,
                mask);
}

template <class Op>
Handler unary_bits(Type t) {
  return for_bits(t, []<class T>() -> Handler { return map_lanes<Op, T>; });
}
template <class Op>
Handler binary_bits(Type t) {
  return for_bits(t, []<class T>() -> Handler { return map_lanes<Op, T, T>; });
}
void decode_logic(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const auto& o = in.operands;
  const Type type = op.take_type();
  if (type == Type::pred) {
    if (op.is({"not"})) {
      const uint32_t a = d.predicate_source(o.at(1));
      d.emit(run_not_predicate, {d.predicate_result(o[0].name), a});
      return;
    }
    const uint32_t a = d.predicate_source(o.at(1)), b = d.predicate_source(o.at(2));
    d.emit(run_predicate_logic, {d.predicate_result(o[0].name), a, b}).modifier =
        static_cast<uint8_t>(op.is({"and"})  ? Logic::logical_and
                             : op.is({"or"}) ? Logic::logical_or
                                             : Logic::logical_xor);
    return;
  }
  const bool one = op.is({"not", "cnot"});
  const Handler run = op.is({"and"})   ? binary_bits<And>(type)
                      : op.is({"or"})  ? binary_bits<Or>(type)
                      : op.is({"xor"}) ? binary_bits<Xor>(type)
                      : op.is({"not"}) ? unary_bits<Not>(type)
                                       : unary_bits<Cnot>(type);
  if (!is_bits(type) || run == nullptr) d.fail("unknown type of " + std::string(in.opcode));
  const uint32_t a = d.source(o.at(1), type), b = one ? 0 : d.source(o.at(2), type);
  d.emit(run, {d.result(o[0], type), a, b});
}

void decode_shift(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const auto& o = in.operands;
  if (op.is({"shf"})) {
    const bool left = op.take("l");
    if (!left && !op.take("r")) d.fail("shf without .l or .r");
    const bool wrap = op.take("wrap");
    if (!wrap && !op.take("clamp")) d.fail("shf without .wrap or .clamp");
    op.take_type();
    const uint32_t a = d.source(o.at(1), Type::b32), b = d.source(o.at(2), Type::b32), c = d.source(o.at(3), Type::u32);
    const Handler run = left ? (wrap ? map_lanes<Funnel<true, true>, uint32_t, uint32_t, uint32_t>
                                     : map_lanes<Funnel<true, false>, uint32_t, uint32_t, uint32_t>)
                             : (wrap ? map_lanes<Funnel<false, true>, uint32_t, uint32_t, uint32_t>
                                     : map_lanes<Funnel<false, false>, uint32_t, uint32_t, uint32_t>);
    d.emit(run, {d.result(o[0], Type::b32), a, b, c});
    return;
  }
  const Type type = op.take_type();
  const Handler run = op.is({"shl"})
                          ? for_bits(type, []<class T>() -> Handler { return map_lanes<Shl, T, uint32_t>; })
                          : for_integer(type, []<class T>() -> Handler { return map_lanes<Shr, T, uint32_t>; });
  if (run == nullptr) d.fail("unknown type of " + std::string(in.opcode));
  const uint32_t a = d.source(o.at(1), type), b = d.source(o.at(2), Type::u32);
  d.emit(run, {d.result(o[0], type), a, b});
}

}  // namespace

bool decode_bits(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  if (op.is({"and", "or", "xor", "not", "cnot"}))
    decode_logic(d, op, in);
  else if (op.is({"shl", "shr", "shf"}))
    decode_shift(d, op, in);
  else
    return false;
  return true;
}

}  // namespace simgpu
