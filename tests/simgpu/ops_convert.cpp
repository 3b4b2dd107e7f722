// ops_convert: cvt between all types.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/simgpu/decoder.h"
#include "tests/simgpu/flush.h"
#include "tests/simgpu/half.h"
#include "tests/simgpu/lanes.h"
#include "tests/simgpu/rounding.h"

namespace simgpu {
namespace {

// Instruction::modifier: a Rounding in the lowest two bits.
constexpr uint8_t kToInteger = 0x04, kFtz = 0x08, kSat = 0x10, kRelu = 0x20, kSatFinite = 0x40;

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;
template <class T>
constexpr bool kIsFloat = std::is_floating_point_v<T> || kIsHalf<T>;

double to_integral(double x, Rounding rounding) { return round_multiple(x, 1.0, rounding); }

template <class From>
double as_double(From x) {
  if constexpr (kIsHalf<From>)
    return widen(x);
  else
    return static_cast<double>(x);
}

// Out of range clamps. NaN gives 0, or the topmost bit where f64 or 64-bit integers take part.
template <class To, class From>
To float_to_integer(From x, uint8_t m) {
  const double value = to_integral(as_double(x), static_cast<Rounding>(m & 3));
  if (std::isnan(value)) {
    const bool big = sizeof(From) == 8 || sizeof(To) == 8;
    return big ? static_cast<To>(std::make_unsigned_t<To>{1} << (8 * sizeof(To) - 1)) : To{0};
  }
  const double beyond = std::ldexp(1.0, std::numeric_limits<To>::digits);
  if (value >= beyond) return std::numeric_limits<To>::max();
  if (value < static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  return static_cast<To>(value);
}

template <class To, class From>
To integer_to_integer(From x, uint8_t m) {
  if ((m & kSat) == 0) return static_cast<To>(x);
  using Wide = __int128;
  const Wide low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
  return static_cast<To>(std::min(std::max(static_cast<Wide>(x), low), high));
}

// x is exact in Source.
template <class To, class Source>
To round_to(Source x, uint8_t m) {
  const auto rounding = static_cast<Rounding>(m & 3);
  if constexpr (kIsHalf<To>) {
    return narrow<To>(static_cast<double>(x), rounding);
  } else {
    const RoundingScope scope(rounding);
    return opaque(static_cast<To>(opaque(x)));
  }
}

template <class To>
To finish_float(To x, uint8_t m) {
  if constexpr (kIsHalf<To>) {
    constexpr uint16_t infinity = std::is_same_v<To, Half> ? 0x7c00 : 0x7f80;
    const bool nan = (x.bits & 0x7fff) > infinity;
    if ((m & kRelu) != 0 && !nan && (x.bits & 0x8000) != 0) return {0};
    if ((m & kSatFinite) != 0 && (x.bits & 0x7fff) == infinity)
      return {static_cast<uint16_t>((x.bits & 0x8000) | (infinity - 1))};
    if ((m & kSat) != 0) return narrow<To>(saturated(widen(x)));
    return x;
  } else {
    if ((m & kFtz) != 0 && sizeof(To) == 4) x = flushed(x);
    return (m & kSat) != 0 ? saturated(x) : canonical(x);
  }
}

template <class To, class From>
To convert(From x, uint8_t m) {
  if constexpr (std::is_same_v<From, float>) {
    if ((m & kFtz) != 0) x = flushed(x);
  }
  if constexpr (!kIsFloat<To>) {
    if constexpr (kIsFloat<From>)
      return float_to_integer<To>(x, m);
    else
      return integer_to_integer<To>(x, m);
  } else if constexpr (!kIsFloat<From>) {
    return finish_float(round_to<To, long double>(static_cast<long double>(x), m), m);  // exact: 64 bits of mantissa
  } else if constexpr (std::is_same_v<To, From>) {
    if ((m & kToInteger) == 0) return finish_float(x, m);
    const double whole = to_integral(as_double(x), static_cast<Rounding>(m & 3));
    return finish_float(round_to<To>(std::copysign(whole, as_double(x)), 0), m);
  } else {
    return finish_float(round_to<To>(as_double(x), m), m);
  }
}

template <class To, class From>
void run_convert(Warp& warp, const Instruction& in, uint32_t mask) {
  for_active(mask, [&](int lane) {
    warp.slots<Slot<To>>(in.r[0])[lane] =
        to_slot<To>(convert<To>(from_slot<From>(warp.slots<Slot<From>>(in.r[1])[lane]), in.modifier));
  });
}

// Two f32 to a pair: the first operand is the upper half.
template <class H>
void run_convert_pair(Warp& warp, const Instruction& in, uint32_t mask) {
  for_active(mask, [&](int lane) {
    const auto half = [&](int operand) {
      return convert<H>(from_slot<float>(warp.slots<uint32_t>(in.r[operand])[lane]), in.modifier);
    };
    warp.slots<uint32_t>(in.r[0])[lane] = to_slot(Pair<H>{half(2), half(1)});
  });
}

// Conversions that the host's instructions do as they are.
template <class To>
struct Plain {
  template <class From>
  static To run(From x) {
    if constexpr (std::is_same_v<To, float>)
      return canonical(static_cast<To>(x));
    else
      return static_cast<To>(x);
  }
};
template <class To, class From>
Handler handler(uint8_t m) {
  constexpr bool integers = !kIsFloat<To> && !kIsFloat<From>;
  constexpr bool to_float = std::is_floating_point_v<To> && !kIsHalf<From> && !std::is_same_v<To, From>;
  if constexpr (integers || to_float) {
    if (m == 0) return map_lanes<Plain<To>, From>;
  }
  return run_convert<To, From>;
}

template <class From>
Handler to_type(Type to, uint8_t m) {
  switch (to) {
    case Type::u8:
      return handler<uint8_t, From>(m);
    case Type::s8:
      return handler<int8_t, From>(m);
    case Type::u16:
      return handler<uint16_t, From>(m);
    case Type::s16:
      return handler<int16_t, From>(m);
    case Type::u32:
      return handler<uint32_t, From>(m);
    case Type::s32:
      return handler<int32_t, From>(m);
    case Type::u64:
      return handler<uint64_t, From>(m);
    case Type::s64:
      return handler<int64_t, From>(m);
    case Type::f16:
      return handler<Half, From>(m);
    case Type::bf16:
      return handler<BFloat, From>(m);
    case Type::f32:
      return handler<float, From>(m);
    case Type::f64:
      return handler<double, From>(m);
    default:
      return nullptr;
  }
}

Handler between(Type to, Type from, uint8_t m) {
  switch (from) {
    case Type::u8:
      return to_type<uint8_t>(to, m);
    case Type::s8:
      return to_type<int8_t>(to, m);
    case Type::u16:
      return to_type<uint16_t>(to, m);
    case Type::s16:
      return to_type<int16_t>(to, m);
    case Type::u32:
      return to_type<uint32_t>(to, m);
    case Type::s32:
      return to_type<int32_t>(to, m);
    case Type::u64:
      return to_type<uint64_t>(to, m);
    case Type::s64:
      return to_type<int64_t>(to, m);
    case Type::f16:
      return to_type<Half>(to, m);
    case Type::bf16:
      return to_type<BFloat>(to, m);
    case Type::f32:
      return to_type<float>(to, m);
    case Type::f64:
      return to_type<double>(to, m);
    default:
      return nullptr;
  }
}

// Which roundings a conversion takes follows from what it loses.
uint8_t take_rounding(Decoder& d, Opcode& op, Type to, Type from) {
  constexpr std::string_view to_float[] = {"rn", "rz", "rm", "rp"}, to_integer[] = {"rni", "rzi", "rmi", "rpi"};
  const bool narrows =
      is_float(to) && (!is_float(from) || size_of(to) < size_of(from) || (size_of(to) == size_of(from) && to != from));
  const bool makes_integer = is_float(from) && (!is_float(to) || to == from);
  for (uint8_t i = 0; i < 4; ++i) {
    if (narrows && op.take(to_float[i])) return i;
    if (makes_integer && op.take(to_integer[i])) return i | kToInteger;
  }
  if (narrows || (makes_integer && !is_float(to))) d.fail("a conversion without the rounding it needs");
  if (is_float(to) && is_float(from)) op.take("rn");  // says nothing where the conversion is exact
  return 0;
}

}  // namespace

bool decode_convert(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  if (!op.is({"cvt"})) return false;
  const Type from = op.take_type(), to = op.take_type();
  const bool pair = to == Type::f16x2 || to == Type::bf16x2;
  uint8_t m = take_rounding(d, op, pair ? Type::bf16 : to, from);
  if (from == Type::f32 || to == Type::f32) m |= op.take("ftz") ? kFtz : 0;
  if (op.take("sat")) m |= kSat;
  if (is_float(to) && size_of(to) <= 4 && to != Type::f32) {
    if (op.take("relu")) m |= kRelu;
    if (op.take("satfinite")) m |= kSatFinite;
  }
  Handler run = pair && from == Type::f32 ? (to == Type::f16x2 ? run_convert_pair<Half> : run_convert_pair<BFloat>)
                : pair                    ? nullptr
                                          : between(to, from, m);
  if (run == nullptr || in.operands.size() != (pair ? 3u : 2u)) d.fail("unknown conversion " + std::string(in.opcode));
  const uint32_t a = d.source(in.operands[1], from), b = pair ? d.source(in.operands[2], from) : 0;
  d.emit(run, {d.result(in.operands[0], to), a, b}).modifier = m;
  return true;
}

}  // namespace simgpu
