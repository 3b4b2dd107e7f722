// ops_fields: fields of bits, counts, permutations of bytes, functions of three bits.
#include <algorithm>
#include <bit>

#include "tests/simgpu/decoder.h"
#include "tests/simgpu/lanes.h"
#include "tests/simgpu/select.h"

namespace simgpu {
namespace {

struct Popc {
  template <class T>
  static uint32_t run(T a) {
    return static_cast<uint32_t>(std::popcount(a));
  }
};
struct Clz {
  template <class T>
  static uint32_t run(T a) {
    return static_cast<uint32_t>(std::countl_zero(a));
  }
};
struct Brev {
  static uint32_t run(uint32_t a) {
    a = (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
    a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
    a = (a >> 4 & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(a);
  }
  static uint64_t run(uint64_t a) {
    return static_cast<uint64_t>(run(static_cast<uint32_t>(a))) << 32 | run(static_cast<uint32_t>(a >> 32));
  }
};
// The highest bit that differs from the sign; all ones if there is none.
template <bool kShiftAmount>
struct Bfind {
  template <class T>
  static uint32_t run(T a) {
    using U = std::make_unsigned_t<T>;
    const U bits = static_cast<U>(std::is_signed_v<T> && a < 0 ? ~a : a);
    if (bits == 0) return 0xffffffffu;
    const auto at = static_cast<uint32_t>(8 * sizeof(T) - 1 - std::countl_zero(bits));
    return kShiftAmount ? static_cast<uint32_t>(8 * sizeof(T) - 1) - at : at;
  }
};
// As in the manual: position and length are 8 bits, a field that leaves the word is filled by the sign.
struct Bfe {
  template <class T>
  static T run(T a, uint32_t position, uint32_t length) {
    constexpr uint32_t top = 8 * sizeof(T) - 1;
    using U = std::make_unsigned_t<T>;
    const uint32_t at = position & 0xff, n = length & 0xff;
    U sign = 0;
    if (std::is_signed_v<T> && n > 0) sign = static_cast<U>(a) >> std::min(at + n - 1, top) & 1;
    const U filling = sign != 0 ? static_cast<U>(~U{0}) : U{0};
    const U shifted = at <= top ? static_cast<U>(static_cast<U>(a) >> at) : U{0};
    const uint32_t present = std::min(n, at <= top ? top + 1 - at : 0);
    const U field = present > top ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << present) - 1);
    return static_cast<T>((shifted & field) | (filling & static_cast<U>(~field)));
  }
};
struct Bfi {
  template <class T>
  static T run(T a, T b, uint32_t position, uint32_t length) {
    constexpr uint32_t width = 8 * sizeof(T);
    const uint32_t at = position & 0xff, n = std::min(length & 0xff, width);
    if (at >= width || n == 0) return b;
    const T field = static_cast<T>((n == width ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << n) - 1)) << at);
    return static_cast<T>((b & ~field) | (static_cast<T>(a << at) & field));
  }
};
template <bool kWrap>
struct Bmsk {
  static uint32_t run(uint32_t position, uint32_t length) {
    const uint32_t at = kWrap ? position & 31 : position, n = kWrap ? length & 31 : std::min(length, 32u);
    if (at > 31) return 0;
    const uint32_t field = n >= 32 ? 0xffffffffu : (1u << n) - 1;
    return field << at;
  }
};
template <bool kWrap>
struct Szext {
  template <class T>
  static T run(T a, uint32_t width) {
    const uint32_t n = kWrap ? width & 31 : std::min(width, 32u);
    if (n == 0) return 0;
    if (n >= 32) return a;
    return static_cast<T>(static_cast<T>(static_cast<uint32_t>(a) << (32 - n)) >> (32 - n));
  }
};

// Bytes of b:a, chosen by the nibbles of c; the highest bit of a nibble spreads the byte's sign.
struct Prmt {
  static uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
    const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
      const uint32_t nibble = c >> (4 * i) & 15;
      uint32_t byte = static_cast<uint32_t>(bytes >> (8 * (nibble & 7))) & 0xff;
      if ((nibble & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
      result |= byte << (8 * i);
    }
    return result;
  }
};
// Which of the eight bytes each result byte takes, by the lower two bits of c.
uint32_t prmt_nibbles(std::string_view mode, uint32_t c) {
  const uint32_t i = c & 3;
  if (mode == "f4e") return 0x3210u + 0x1111u * i;
  if (mode == "rc8") return 0x1111u * i;
  if (mode == "rc16") return (i & 1) != 0 ? 0x3232u : 0x1010u;
  uint32_t nibbles = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    const uint32_t byte = mode == "b4e" ? (8 + i - k) % 8 : mode == "ecl" ? std::max(k, i) : std::min(k, i);
    nibbles |= byte << (4 * k);
  }
  return nibbles;
}
template <int kMode>
struct PrmtMode {
  static constexpr std::string_view kNames[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
  static uint32_t run(uint32_t a, uint32_t b, uint32_t c) { return Prmt::run(a, b, prmt_nibbles(kNames[kMode], c)); }
};

void run_lop3(Warp& warp, const Instruction& in, uint32_t mask) {
  const auto table = static_cast<uint32_t>(in.value);
  uint32_t* result = warp.slots<uint32_t>(in.r[0]);
  const uint32_t *a = warp.slots<uint32_t>(in.r[1]), *b = warp.slots<uint32_t>(in.r[2]),
                 *c = warp.slots<uint32_t>(in.r[3]);
  for (int lane = 0; lane < kLanes; ++lane) {
    uint32_t value = 0;
    for (uint32_t row = 0; row < 8; ++row) {
      const uint32_t choose = 0u - (table >> row & 1);
      value |= choose & ((row & 4) != 0 ? a[lane] : ~a[lane]) & ((row & 2) != 0 ? b[lane] : ~b[lane]) &
               ((row & 1) != 0 ? c[lane] : ~c[lane]);
    }
    result[lane] = (mask >> lane & 1) != 0 ? value : result[lane];
  }
}

template <class Op>
Handler wide_enough(Type t) {
  return for_bits(t, []<class T>() -> Handler {
    if constexpr (sizeof(T) < 4)
      return nullptr;
    else
      return map_lanes<Op, T>;
  });
}

void decode_field(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const auto& o = in.operands;
  if (op.is({"bmsk", "szext"})) {
    const bool wrap = op.take("wrap");
    if (!wrap && !op.take("clamp")) d.fail(std::string(op.base()) + " without .wrap or .clamp");
    const Type type = op.take_type();
    const bool is_szext = op.is({"szext"}), sign = type == Type::s32;
    if (size_of(type) != 4) d.fail("unknown type of " + std::string(in.opcode));
    const Handler run =
        !is_szext ? (wrap ? map_lanes<Bmsk<true>, uint32_t, uint32_t> : map_lanes<Bmsk<false>, uint32_t, uint32_t>)
        : sign    ? (wrap ? map_lanes<Szext<true>, int32_t, uint32_t> : map_lanes<Szext<false>, int32_t, uint32_t>)
                  : (wrap ? map_lanes<Szext<true>, uint32_t, uint32_t> : map_lanes<Szext<false>, uint32_t, uint32_t>);
    const uint32_t a = d.source(o.at(1), Type::b32), b = d.source(o.at(2), Type::u32);
    d.emit(run, {d.result(o[0], Type::b32), a, b});
    return;
  }
  const Type type = op.take_type();
  if (size_of(type) < 4) d.fail("unknown type of " + std::string(in.opcode));
  if (op.is({"bfe"})) {
    const uint32_t a = d.source(o.at(1), type), b = d.source(o.at(2), Type::u32), c = d.source(o.at(3), Type::u32);
    d.emit(for_integer(type, []<class T>() -> Handler { return map_lanes<Bfe, T, uint32_t, uint32_t>; }),
           {d.result(o[0], type), a, b, c});
  } else {
    const uint32_t a = d.source(o.at(1), type), b = d.source(o.at(2), type), at = d.source(o.at(3), Type::u32),
                   n = d.source(o.at(4), Type::u32);
    d.emit(for_bits(type, []<class T>() -> Handler { return map_lanes<Bfi, T, T, uint32_t, uint32_t>; }),
           {d.result(o[0], type), a, b, at, n});
  }
}

void decode_count(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const Type type = op.take_type();
  Handler run = nullptr;
  if (op.is({"popc"})) run = wide_enough<Popc>(type);
  if (op.is({"clz"})) run = wide_enough<Clz>(type);
  if (op.is({"brev"})) run = wide_enough<Brev>(type);
  if (op.is({"bfind"})) {
    run = op.take("shiftamt") ? for_integer(type, []<class T>() -> Handler { return map_lanes<Bfind<true>, T>; })
                              : for_integer(type, []<class T>() -> Handler { return map_lanes<Bfind<false>, T>; });
  }
  if (run == nullptr || size_of(type) < 4) d.fail("unknown type of " + std::string(in.opcode));
  const uint32_t a = d.source(in.operands.at(1), type);
  d.emit(run, {d.result(in.operands[0], op.is({"brev"}) ? type : Type::u32), a});
}

void decode_mix(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const auto& o = in.operands;
  constexpr Handler modes[] = {
      map_lanes<PrmtMode<0>, uint32_t, uint32_t, uint32_t>, map_lanes<PrmtMode<1>, uint32_t, uint32_t, uint32_t>,
      map_lanes<PrmtMode<2>, uint32_t, uint32_t, uint32_t>, map_lanes<PrmtMode<3>, uint32_t, uint32_t, uint32_t>,
      map_lanes<PrmtMode<4>, uint32_t, uint32_t, uint32_t>, map_lanes<PrmtMode<5>, uint32_t, uint32_t, uint32_t>};
  Handler permute = map_lanes<Prmt, uint32_t, uint32_t, uint32_t>;
  for (int mode = 0; mode < 6; ++mode) {
    if (op.is({"prmt"}) && op.take(PrmtMode<0>::kNames[mode])) permute = modes[mode];
  }
  if (op.take_type() != Type::b32) d.fail("unknown type of " + std::string(in.opcode));
  const uint32_t a = d.source(o.at(1), Type::b32), b = d.source(o.at(2), Type::b32), c = d.source(o.at(3), Type::b32);
  if (op.is({"lop3"})) {
    if (o.size() != 5 || o[4].kind != ptx::Operand::Kind::integer) d.fail("lop3 without a table");
    d.emit(run_lop3, {d.result(o[0], Type::b32), a, b, c}).value = o[4].value;
    return;
  }
  d.emit(permute, {d.result(o[0], Type::b32), a, b, c});
}

}  // namespace

bool decode_fields(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  if (op.is({"bfe", "bfi", "bmsk", "szext"}))
    decode_field(d, op, in);
  else if (op.is({"popc", "clz", "brev", "bfind"}))
    decode_count(d, op, in);
  else if (op.is({"lop3", "prmt"}))
    decode_mix(d, op, in);
  else
    return false;
  return true;
}

}  // namespace simgpu
