// ops_integer: arithmetic on integers.
#include <algorithm>
#include <limits>

#include "tests/simgpu/decoder.h"
#include "tests/simgpu/lanes.h"
#include "tests/simgpu/select.h"

namespace simgpu {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
// Arithmetic wraps: in unsigned, and not narrower than unsigned int, where C++ would promote to a signed int.
template <class T>
using Wrap = std::conditional_t<sizeof(T) < 4, uint32_t, Unsigned<T>>;

struct Add {
  template <class T>
  static T run(T a, T b) {
    return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b));
  }
};
struct Sub {
  template <class T>
  static T run(T a, T b) {
    return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b));
  }
};
struct MulLo {
  template <class T>
  static T run(T a, T b) {
    return static_cast<T>(static_cast<Wrap<T>>(a) * static_cast<Wrap<T>>(b));
  }
};
template <class T>
struct Double {};
template <>
struct Double<uint16_t> {
  using type = uint32_t;
};
template <>
struct Double<int16_t> {
  using type = int32_t;
};
template <>
struct Double<uint32_t> {
  using type = uint64_t;
};
template <>
struct Double<int32_t> {
  using type = int64_t;
};
template <>
struct Double<uint64_t> {
  using type = unsigned __int128;
};
template <>
struct Double<int64_t> {
  using type = __int128;
};
template <class T>
typename Double<T>::type wide_product(T a, T b) {
  return static_cast<typename Double<T>::type>(a) * static_cast<typename Double<T>::type>(b);
}
struct MulHi {
  template <class T>
  static T run(T a, T b) {
    return static_cast<T>(wide_product(a, b) >> (8 * sizeof(T)));
  }
};
struct MulWide {
  template <class T>
  static typename Double<T>::type run(T a, T b) {
    return wide_product(a, b);
  }
};
struct MadLo {
  template <class T>
  static T run(T a, T b, T c) {
    return Add::run(MulLo::run(a, b), c);
  }
};
struct MadHi {
  template <class T>
  static T run(T a, T b, T c) {
    return Add::run(MulHi::run(a, b), c);
  }
};
struct MadHiSat {
  static int32_t run(int32_t a, int32_t b, int32_t c) {
    const int64_t sum = int64_t{MulHi::run(a, b)} + c;
    return static_cast<int32_t>(std::min<int64_t>(std::max<int64_t>(sum, INT32_MIN), INT32_MAX));
  }
};
struct MadWide {
  template <class T>
  static typename Double<T>::type run(T a, T b, typename Double<T>::type c) {
    return Add::run(MulWide::run(a, b), c);
  }
};
struct AddSat {
  static int32_t run(int32_t a, int32_t b) {
    int32_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT32_MIN : INT32_MAX) : sum;
  }
};
struct SubSat {
  static int32_t run(int32_t a, int32_t b) {
    int32_t difference;
    return __builtin_sub_overflow(a, b, &difference) ? (a < 0 ? INT32_MIN : INT32_MAX) : difference;
  }
};
// The manual leaves x / 0 open; the machines give all ones. INT_MIN / -1 wraps.
struct Div {
  template <class T>
  static T run(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return Sub::run(T{0}, a);
    }
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  static T run(T a, T b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Min {
  template <class T>
  static T run(T a, T b) {
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  static T run(T a, T b) {
    return a > b ? a : b;
  }
};
struct Neg {
  template <class T>
  static T run(T a) {
    return Sub::run(T{0}, a);
  }
};
struct Abs {
  template <class T>
  static T run(T a) {
    return a < 0 ? Neg::run(a) : a;
  }
};
struct Sad {
  template <class T>
  static T run(T a, T b, T c) {
    return Add::run(c, a < b ? Sub::run(b, a) : Sub::run(a, b));
  }
};
template <class Op>
Handler unary(Type type) {
  return for_integer(type, []<class T>() -> Handler { return map_lanes<Op, T>; });
}
template <class Op>
Handler binary(Type type) {
  return for_integer(type, []<class T>() -> Handler { return map_lanes<Op, T, T>; });
}
template <class Op>
Handler binary_active(Type type) {
  return for_integer(type, []<class T>() -> Handler { return map_active<Op, T, T>; });
}
template <class Op>
Handler ternary(Type type) {
  return for_integer(type, []<class T>() -> Handler { return map_lanes<Op, T, T, T>; });
}

// mul and mad of 16 and 32 bits to twice as many.
template <class Op, bool kAdds>
Handler widening(Type type) {
  return for_integer(type, []<class T>() -> Handler {
    if constexpr (sizeof(T) == 8)
      return nullptr;
    else if constexpr (kAdds)
      return map_lanes<Op, T, T, typename Double<T>::type>;
    else
      return map_lanes<Op, T, T>;
  });
}

Type doubled(Type type) {
  switch (type) {
    case Type::u16:
      return Type::u32;
    case Type::s16:
      return Type::s32;
    case Type::u32:
      return Type::u64;
    case Type::s32:
      return Type::s64;
    default:
      return Type::none;
  }
}

struct Choice {
  Handler run = nullptr;
  int sources = 2;
  Type result = Type::none, third = Type::none;  // none: the type of the others
};

Choice choose_product(Opcode& op, Type type) {
  const bool adds = op.is({"mad"});
  if (op.take("lo")) return adds ? Choice{ternary<MadLo>(type), 3} : Choice{binary<MulLo>(type)};
  if (op.take("hi")) {
    if (op.take("sat"))
      return {adds && type == Type::s32 ? map_lanes<MadHiSat, int32_t, int32_t, int32_t> : Handler{}, 3};
    return adds ? Choice{ternary<MadHi>(type), 3} : Choice{binary<MulHi>(type)};
  }
  if (op.take("wide")) {
    return {adds ? widening<MadWide, true>(type) : widening<MulWide, false>(type), adds ? 3 : 2, doubled(type),
            doubled(type)};
  }
  return {};
}

Choice choose(Opcode& op, Type type) {
  const bool saturates = op.is({"add", "sub"}) && op.take("sat");
  if (saturates && type != Type::s32) return {};
  if (op.is({"add"})) return {saturates ? map_lanes<AddSat, int32_t, int32_t> : binary<Add>(type)};
  if (op.is({"sub"})) return {saturates ? map_lanes<SubSat, int32_t, int32_t> : binary<Sub>(type)};
  if (op.is({"mul", "mad"})) return choose_product(op, type);
  if (op.is({"div"})) return {binary_active<Div>(type)};
  if (op.is({"rem"})) return {binary_active<Rem>(type)};
  if (op.is({"min"})) return {binary<Min>(type)};
  if (op.is({"max"})) return {binary<Max>(type)};
  if (op.is({"neg"})) return {is_signed(type) ? unary<Neg>(type) : nullptr, 1};
  if (op.is({"abs"})) return {is_signed(type) ? unary<Abs>(type) : nullptr, 1};
  if (op.is({"sad"})) return {ternary<Sad>(type), 3};
  return {};
}

}  // namespace

bool decode_integer(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const Type type = op.last_type();
  if (!op.is({"add", "sub", "mul", "mad", "div", "rem", "min", "max", "neg", "abs", "sad"}) || !is_integer(type))
    return false;
  if (op.has("cc")) return false;  // ops_carry.cpp
  op.take_type();
  const Choice choice = choose(op, type);
  if (choice.run == nullptr || in.operands.size() != static_cast<size_t>(choice.sources) + 1)
    d.fail("unknown form of " + std::string(in.opcode));
  uint32_t sources[3] = {};
  for (int i = 0; i < choice.sources; ++i) {
    sources[i] = d.source(in.operands[i + 1], i == 2 && choice.third != Type::none ? choice.third : type);
  }
  d.emit(choice.run, {d.result(in.operands[0], choice.result == Type::none ? type : choice.result), sources[0],
                      sources[1], sources[2]});
  return true;
}

}  // namespace simgpu
