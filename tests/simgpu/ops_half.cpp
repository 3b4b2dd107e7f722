// ops_half: arithmetic in f16 and bf16, single or in pairs.
#include <algorithm>
#include <cmath>

#include "tests/simgpu/decoder.h"
#include "tests/simgpu/half.h"
#include "tests/simgpu/lanes.h"

namespace simgpu {
namespace {

struct Add {
  static double run(double a, double b) { return a + b; }
};
struct Sub {
  static double run(double a, double b) { return a - b; }
};
struct Mul {
  static double run(double a, double b) { return a * b; }
};
struct Fma {
  static double run(double a, double b, double c) { return a * b + c; }
};
template <bool kMax>
struct Extreme {
  static double run(double a, double b) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) != kMax ? a : b;
    return (a > b) == kMax ? a : b;
  }
};
template <bool kMax>
struct ExtremeNan {
  static double run(double a, double b) {
    return std::isnan(a) || std::isnan(b) ? std::nan("") : Extreme<kMax>::run(a, b);
  }
};
struct ExpTwo {
  static double run(double a) { return std::exp2(a); }
};
struct Tanh {
  static double run(double a) { return std::tanh(a); }
};
struct Neg {
  template <class H>
  static H run(H a) {
    return {static_cast<uint16_t>(a.bits ^ 0x8000u)};
  }
};
struct Abs {
  template <class H>
  static H run(H a) {
    return {static_cast<uint16_t>(a.bits & 0x7fffu)};
  }
};

// Op on one half: in double, then rounded; neg and abs on the bits.
template <class Op>
struct Rounded {
  template <class... H>
  static auto run(H... a) {
    using R = std::common_type_t<H...>;
    return narrow<R>(Op::run(double{widen(a)}...));
  }
};
template <class Op>
struct Twice {
  template <class H, class... More>
  static Pair<H> run(Pair<H> a, More... more) {
    return {Op::run(a.low, more.low...), Op::run(a.high, more.high...)};
  }
};
template <class Op, bool kRelu, bool kSat>
struct Clamped {
  static double clamp(double x) {
    if (kSat) return x > 0 ? std::min(x, 1.0) : 0.0;
    return kRelu && x < 0 ? 0.0 : x;
  }
  template <class... D>
  static double run(D... a) {
    return clamp(Op::run(a...));
  }
};

template <class Op, int kSources>
Handler by_type(Type type) {
  const auto of = []<class T, class O>() -> Handler {
    if constexpr (kSources == 1)
      return map_active<O, T>;
    else if constexpr (kSources == 2)
      return map_active<O, T, T>;
    else
      return map_active<O, T, T, T>;
  };
  switch (type) {
    case Type::f16:
      return of.template operator()<Half, Op>();
    case Type::bf16:
      return of.template operator()<BFloat, Op>();
    case Type::f16x2:
      return of.template operator()<Pair<Half>, Twice<Op>>();
    case Type::bf16x2:
      return of.template operator()<Pair<BFloat>, Twice<Op>>();
    default:
      return nullptr;
  }
}

template <class Op, int kSources>
Handler arithmetic(Type type, Opcode& op) {
  if (op.take("sat")) return by_type<Rounded<Clamped<Op, false, true>>, kSources>(type);
  if (op.take("relu")) return by_type<Rounded<Clamped<Op, true, false>>, kSources>(type);
  return by_type<Rounded<Op>, kSources>(type);
}

struct Choice {
  Handler run = nullptr;
  int sources = 0;
};

Choice choose(Opcode& op, Type type) {
  if (op.is({"add"})) return {arithmetic<Add, 2>(type, op), 2};
  if (op.is({"sub"})) return {arithmetic<Sub, 2>(type, op), 2};
  if (op.is({"mul"})) return {arithmetic<Mul, 2>(type, op), 2};
  if (op.is({"fma"})) return {arithmetic<Fma, 3>(type, op), 3};
  if (op.is({"neg"})) return {by_type<Neg, 1>(type), 1};
  if (op.is({"abs"})) return {by_type<Abs, 1>(type), 1};
  if (op.is({"min"}))
    return {op.take("NaN") ? by_type<Rounded<ExtremeNan<false>>, 2>(type) : by_type<Rounded<Extreme<false>>, 2>(type),
            2};
  if (op.is({"max"}))
    return {op.take("NaN") ? by_type<Rounded<ExtremeNan<true>>, 2>(type) : by_type<Rounded<Extreme<true>>, 2>(type), 2};
  if (op.is({"ex2"}) && op.take("approx")) return {by_type<Rounded<ExpTwo>, 1>(type), 1};
  if (op.is({"tanh"}) && op.take("approx")) return {by_type<Rounded<Tanh>, 1>(type), 1};
  return {};
}

}  // namespace

bool decode_half(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const Type type = op.last_type();
  if (type != Type::f16 && type != Type::bf16 && type != Type::f16x2 && type != Type::bf16x2) return false;
  if (!op.is({"add", "sub", "mul", "fma", "neg", "abs", "min", "max", "ex2", "tanh"})) return false;
  op.take_type();
  op.take("rn");  // the only rounding there is
  // ex2.approx.ftz.bf16: a bf16 denormal's power of two is 1 with and without the flush.
  if (op.is({"ex2"}) && (type == Type::bf16 || type == Type::bf16x2)) op.take("ftz");
  const Choice choice = choose(op, type);
  if (choice.run == nullptr || in.operands.size() != static_cast<size_t>(choice.sources) + 1)
    d.fail("unknown form of " + std::string(in.opcode));
  uint32_t s[3] = {};
  for (int i = 0; i < choice.sources; ++i) s[i] = d.source(in.operands[i + 1], type);
  d.emit(choice.run, {d.result(in.operands[0], type), s[0], s[1], s[2]});
  return true;
}

}  // namespace simgpu
