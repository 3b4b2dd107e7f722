// ops_float: arithmetic in f32 and f64, rounded to nearest.
#include <cmath>

#include "tests/simgpu/decoder.h"
#include "tests/simgpu/flush.h"
#include "tests/simgpu/lanes.h"

namespace simgpu {
namespace {

struct Add {
  template <class T>
  static T run(T a, T b) {
    return a + b;
  }
};
struct Sub {
  template <class T>
  static T run(T a, T b) {
    return a - b;
  }
};
struct Mul {
  template <class T>
  static T run(T a, T b) {
    return a * b;
  }
};
struct Fma {
  static float run(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static double run(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
struct Div {
  template <class T>
  static T run(T a, T b) {
    return a / b;
  }
};
struct Sqrt {
  template <class T>
  static T run(T a) {
    return std::sqrt(a);
  }
};
struct Rcp {
  template <class T>
  static T run(T a) {
    return T{1} / a;
  }
};
// The one that is a number; -0 is below +0. kNan: NaN if either is.
template <bool kMax, bool kNan>
struct Extreme {
  template <class T>
  static T run(T a, T b) {
    const bool first = a == b ? std::signbit(a) != kMax : (kMax ? a > b : a < b);
    const T of_numbers = first ? a : b;
    if constexpr (kNan) return a != a ? a : b != b ? b : of_numbers;
    return a != a ? b : b != b ? a : of_numbers;
  }
};
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T>
constexpr Bits<T> kSign = Bits<T>{1} << (8 * sizeof(T) - 1);
struct Neg {
  template <class T>
  static T run(T a) {
    return std::bit_cast<T>(std::bit_cast<Bits<T>>(a) ^ kSign<T>);
  }
};
struct Abs {
  template <class T>
  static T run(T a) {
    return std::bit_cast<T>(std::bit_cast<Bits<T>>(a) & ~kSign<T>);
  }
};
// The magnitude of b with the sign of a.
struct Copysign {
  template <class T>
  static T run(T a, T b) {
    return std::bit_cast<T>((std::bit_cast<Bits<T>>(a) & kSign<T>) | (std::bit_cast<Bits<T>>(b) & ~kSign<T>));
  }
};

template <class Op, class... A>
Handler with_modifiers(FloatModifiers m) {
  if (m.ftz) return m.sat ? map_lanes<Modified<Op, true, true>, A...> : map_lanes<Modified<Op, true, false>, A...>;
  return m.sat ? map_lanes<Modified<Op, false, true>, A...> : map_lanes<Modified<Op, false, false>, A...>;
}

struct Choice {
  Handler run = nullptr;
  int sources = 0;
};

// Arithmetic that rounds: .rn is the default of add, sub and mul, and must be said of the others.
template <class T>
Choice choose_rounded(const Opcode& op, FloatModifiers m) {
  if (op.is({"add"})) return {with_modifiers<Add, T, T>(m), 2};
  if (op.is({"sub"})) return {with_modifiers<Sub, T, T>(m), 2};
  if (op.is({"mul"})) return {with_modifiers<Mul, T, T>(m), 2};
  if (op.is({"fma", "mad"})) return {with_modifiers<Fma, T, T, T>(m), 3};
  if (op.is({"div"})) return {with_modifiers<Div, T, T>(m), 2};
  if (op.is({"sqrt"})) return {with_modifiers<Sqrt, T>(m), 1};
  if (op.is({"rcp"})) return {with_modifiers<Rcp, T>(m), 1};
  return {};
}

template <class T>
Choice choose_exact(Opcode& op, FloatModifiers m) {
  if (op.is({"min"}))
    return {
        op.take("NaN") ? with_modifiers<Extreme<false, true>, T, T>(m) : with_modifiers<Extreme<false, false>, T, T>(m),
        2};
  if (op.is({"max"}))
    return {
        op.take("NaN") ? with_modifiers<Extreme<true, true>, T, T>(m) : with_modifiers<Extreme<true, false>, T, T>(m),
        2};
  if (op.is({"neg"})) return {m.ftz ? map_lanes<Modified<Neg, true, false>, T> : map_lanes<Neg, T>, 1};
  if (op.is({"abs"})) return {m.ftz ? map_lanes<Modified<Abs, true, false>, T> : map_lanes<Abs, T>, 1};
  if (op.is({"copysign"})) return {map_lanes<Copysign, T, T>, 2};
  return {};
}

}  // namespace

bool decode_float(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const Type type = op.last_type();
  const bool rounds = op.is({"add", "sub", "mul", "fma", "mad", "div", "sqrt", "rcp"});
  if (!rounds && !op.is({"min", "max", "neg", "abs", "copysign"})) return false;
  if (type != Type::f32 && type != Type::f64) return false;
  for (const std::string_view other : {"rz", "rm", "rp", "approx", "full"}) {
    if (op.has(other)) return false;  // ops_rounded.cpp, ops_functions.cpp
  }
  op.take_type();
  if (rounds && !op.take("rn") && !op.is({"add", "sub", "mul"}))
    d.fail("a rounding was expected in " + std::string(in.opcode));
  FloatModifiers m;
  m.ftz = type == Type::f32 && op.take("ftz");
  m.sat = type == Type::f32 && op.is({"add", "sub", "mul", "fma", "mad"}) && op.take("sat");
  const Choice choice = rounds ? (type == Type::f32 ? choose_rounded<float>(op, m) : choose_rounded<double>(op, m))
                               : (type == Type::f32 ? choose_exact<float>(op, m) : choose_exact<double>(op, m));
  if (in.operands.size() != static_cast<size_t>(choice.sources) + 1)
    d.fail("unknown form of " + std::string(in.opcode));
  uint32_t s[3] = {};
  for (int i = 0; i < choice.sources; ++i) s[i] = d.source(in.operands[i + 1], type);
  d.emit(choice.run, {d.result(in.operands[0], type), s[0], s[1], s[2]});
  return true;
}

}  // namespace simgpu
