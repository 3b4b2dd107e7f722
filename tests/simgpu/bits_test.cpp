// Logic, shifts, fields of bits.
#include "tests/simgpu/op_test.h"

namespace simgpu {
namespace {

template <class T>
void check_logic() {
  const std::string t = ".b" + std::to_string(8 * sizeof(T));
  check_op<T, T, T>("and" + t + " d, a, b;", [](T a, T b) { return static_cast<T>(a & b); });
  check_op<T, T, T>("or" + t + " d, a, b;", [](T a, T b) { return static_cast<T>(a | b); });
  check_op<T, T, T>("xor" + t + " d, a, b;", [](T a, T b) { return static_cast<T>(a ^ b); });
  check_op<T, T>("not" + t + " d, a;", [](T a) { return static_cast<T>(~a); });
  check_op<T, T>("cnot" + t + " d, a;", [](T a) { return static_cast<T>(a == 0); });
}

TEST(SimgpuBits, Logic) {
  check_logic<uint16_t>();
  check_logic<uint32_t>();
  check_logic<uint64_t>();
}

TEST(SimgpuBits, PredicateLogic) {
  const std::string set = "setp.gt.s32 p, a, 5;\nsetp.lt.s32 q, b, 3;\n", get = "\nselp.u32 d, 1, 0, p;";
  check_op<uint32_t, int32_t, int32_t>(set + "and.pred p, p, q;" + get,
                                       [](int32_t a, int32_t b) { return uint32_t{a > 5 && b < 3}; });
  check_op<uint32_t, int32_t, int32_t>(set + "or.pred p, p, q;" + get,
                                       [](int32_t a, int32_t b) { return uint32_t{a > 5 || b < 3}; });
  check_op<uint32_t, int32_t, int32_t>(set + "xor.pred p, p, q;" + get,
                                       [](int32_t a, int32_t b) { return uint32_t{(a > 5) != (b < 3)}; });
  check_op<uint32_t, int32_t, int32_t>(set + "and.pred p, !p, q;" + get,
                                       [](int32_t a, int32_t b) { return uint32_t{a <= 5 && b < 3}; });
  check_op<uint32_t, int32_t, int32_t>(set + "not.pred p, q;" + get,
                                       [](int32_t, int32_t b) { return uint32_t{b >= 3}; });
}

// A distance at or beyond the width shifts all bits out.
template <class T>
void check_shifts(const std::string& left, const std::string& right) {
  constexpr uint32_t width = 8 * sizeof(T);
  check_op<T, T, uint32_t>(left + " d, a, b;",
                           [](T a, uint32_t b) { return b < width ? static_cast<T>(a << b) : T{0}; });
  check_op<T, T, uint32_t>(right + " d, a, b;", [](T a, uint32_t b) {
    return b < width ? static_cast<T>(a >> b) : static_cast<T>(a < 0 ? -1 : 0);
  });
}

TEST(SimgpuBits, ShiftsClamp) {
  check_shifts<uint16_t>("shl.b16", "shr.u16");
  check_shifts<uint32_t>("shl.b32", "shr.u32");
  check_shifts<uint64_t>("shl.b64", "shr.u64");
  check_shifts<int16_t>("shl.b16", "shr.s16");
  check_shifts<int32_t>("shl.b32", "shr.s32");
  check_shifts<int64_t>("shl.b64", "shr.s64");
}

TEST(SimgpuBits, FunnelShifts) {
  const auto check = [](const std::string& mode, bool left, bool wrap) {
    check_op<uint32_t, uint32_t, uint32_t, uint32_t>("shf." + mode + ".b32 d, a, b, c;",
                                                     [=](uint32_t a, uint32_t b, uint32_t c) {
                                                       const uint32_t n = wrap ? c % 32 : std::min(c, 32u);
                                                       const uint64_t both = uint64_t{b} << 32 | a;
                                                       if (left)
                                                         return n == 32 ? a : static_cast<uint32_t>(both << n >> 32);
                                                       return n == 32 ? b : static_cast<uint32_t>(both >> n);
                                                     });
  };
  check("l.wrap", true, true);
  check("l.clamp", true, false);
  check("r.wrap", false, true);
  check("r.clamp", false, false);
}

template <class T>
uint32_t count_bits(T a) {
  uint32_t n = 0;
  for (; a != 0; a >>= 1) n += a & 1;
  return n;
}
template <class T>
T reversed(T a) {
  T result = 0;
  for (size_t i = 0; i < 8 * sizeof(T); ++i) result |= (a >> i & 1) << (8 * sizeof(T) - 1 - i);
  return result;
}
template <class T>
uint32_t leading_zeros(T a) {
  uint32_t n = 0;
  while (n < 8 * sizeof(T) && (a >> (8 * sizeof(T) - 1 - n) & 1) == 0) ++n;
  return n;
}

TEST(SimgpuBits, CountsAndReversals) {
  check_op<uint32_t, uint32_t>("popc.b32 d, a;", count_bits<uint32_t>);
  check_op<uint32_t, uint64_t>("popc.b64 d, a;", count_bits<uint64_t>);
  check_op<uint32_t, uint32_t>("clz.b32 d, a;", leading_zeros<uint32_t>);
  check_op<uint32_t, uint64_t>("clz.b64 d, a;", leading_zeros<uint64_t>);
  check_op<uint32_t, uint32_t>("brev.b32 d, a;", reversed<uint32_t>);
  check_op<uint64_t, uint64_t>("brev.b64 d, a;", reversed<uint64_t>);
}

// The highest bit that is not a copy of the sign.
template <class T>
uint32_t find_highest(T a) {
  for (int i = 8 * sizeof(T) - 1; i >= 0; --i) {
    if ((a >> i & 1) != (a < 0 ? 1 : 0)) return static_cast<uint32_t>(i);
  }
  return 0xffffffffu;
}

TEST(SimgpuBits, Bfind) {
  check_op<uint32_t, uint32_t>("bfind.u32 d, a;", find_highest<uint32_t>);
  check_op<uint32_t, int32_t>("bfind.s32 d, a;", find_highest<int32_t>);
  check_op<uint32_t, uint64_t>("bfind.u64 d, a;", find_highest<uint64_t>);
  check_op<uint32_t, int64_t>("bfind.s64 d, a;", find_highest<int64_t>);
  check_op<uint32_t, uint32_t>("bfind.shiftamt.u32 d, a;",
                               [](uint32_t a) { return a == 0 ? 0xffffffffu : 31 - find_highest(a); });
}

// Bit by bit, as the manual writes it.
template <class T>
T extract(T a, uint32_t b, uint32_t c) {
  constexpr int msb = 8 * sizeof(T) - 1;
  const int pos = b & 0xff, len = c & 0xff;
  const bool sign = !std::is_signed_v<T> || len == 0 ? false : (a >> std::min(pos + len - 1, msb) & 1) != 0;
  std::make_unsigned_t<T> d = 0;
  for (int i = 0; i <= msb; ++i) {
    const bool bit = i < len && pos + i <= msb ? (a >> (pos + i) & 1) != 0 : sign;
    d |= static_cast<std::make_unsigned_t<T>>(bit) << i;
  }
  return static_cast<T>(d);
}
template <class T>
T insert(T a, T b, uint32_t c, uint32_t d) {
  constexpr int msb = 8 * sizeof(T) - 1;
  const int pos = c & 0xff, len = d & 0xff;
  T f = b;
  for (int i = 0; i < len && pos + i <= msb && i <= msb; ++i)
    f = (f & ~(T{1} << (pos + i))) | ((a >> i & 1) << (pos + i));
  return f;
}

TEST(SimgpuBits, Fields) {
  check_op<uint32_t, uint32_t, uint32_t, uint32_t>("bfe.u32 d, a, b, c;", extract<uint32_t>);
  check_op<int32_t, int32_t, uint32_t, uint32_t>("bfe.s32 d, a, b, c;", extract<int32_t>);
  check_op<uint64_t, uint64_t, uint32_t, uint32_t>("bfe.u64 d, a, b, c;", extract<uint64_t>);
  check_op<int64_t, int64_t, uint32_t, uint32_t>("bfe.s64 d, a, b, c;", extract<int64_t>);
  check_op<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>("bfi.b32 d, a, b, c, e;", insert<uint32_t>);
  check_op<uint64_t, uint64_t, uint64_t, uint32_t, uint32_t>("bfi.b64 d, a, b, c, e;", insert<uint64_t>);
  check_op<uint32_t, uint32_t, uint32_t>("bmsk.clamp.b32 d, a, b;", [](uint32_t a, uint32_t b) {
    uint32_t mask = 0;
    for (uint64_t i = a; i < uint64_t{a} + std::min(b, 32u) && i < 32; ++i) mask |= 1u << i;
    return mask;
  });
  check_op<int32_t, int32_t, uint32_t>("szext.clamp.s32 d, a, b;", [](int32_t a, uint32_t b) {
    return b == 0 ? 0 : extract<int32_t>(a, 0, std::min(b, 32u));
  });
}

TEST(SimgpuBits, Permutations) {
  const auto byte_of = [](uint32_t a, uint32_t b, uint32_t i) {
    return ((i < 4 ? a >> (8 * i) : b >> (8 * (i - 4))) & 0xff);
  };
  check_op<uint32_t, uint32_t, uint32_t, uint32_t>("prmt.b32 d, a, b, c;", [&](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t d = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t nibble = c >> (4 * i) & 15, byte = byte_of(a, b, nibble & 7);
      d |= (nibble < 8 ? byte : (byte & 0x80) != 0 ? 0xffu : 0u) << (8 * i);
    }
    return d;
  });
  // The manual's table: which byte each of d's bytes 3, 2, 1, 0 is, for c = 0, 1, 2, 3.
  const std::pair<std::string, std::array<uint32_t, 4>> modes[] = {
      {"f4e", {0x3210, 0x4321, 0x5432, 0x6543}}, {"b4e", {0x5670, 0x6701, 0x7012, 0x0123}},
      {"rc8", {0x0000, 0x1111, 0x2222, 0x3333}}, {"ecl", {0x3210, 0x3211, 0x3222, 0x3333}},
      {"ecr", {0x0000, 0x1110, 0x2210, 0x3210}}, {"rc16", {0x1010, 0x3232, 0x1010, 0x3232}}};
  for (const auto& [mode, table] : modes) {
    check_op<uint32_t, uint32_t, uint32_t, uint32_t>("prmt.b32." + mode + " d, a, b, c;",
                                                     [&, table = table](uint32_t a, uint32_t b, uint32_t c) {
                                                       uint32_t d = 0;
                                                       for (uint32_t i = 0; i < 4; ++i)
                                                         d |= byte_of(a, b, table[c & 3] >> (4 * i) & 15) << (8 * i);
                                                       return d;
                                                     });
  }
}

TEST(SimgpuBits, EveryTableOfThreeInputs) {
  const std::vector<std::tuple<uint32_t, uint32_t, uint32_t>> cases = {{0xf0f0f0f0u, 0xccccccccu, 0xaaaaaaaau},
                                                                       {0x12345678u, 0x9abcdef0u, 0x0fedcba9u}};
  for (int table = 0; table < 256; ++table) {
    check_cases<uint32_t, uint32_t, uint32_t, uint32_t>(
        "lop3.b32 d, a, b, c, " + std::to_string(table) + ";", cases, [&](uint32_t a, uint32_t b, uint32_t c) {
          uint32_t d = 0;
          for (int i = 0; i < 32; ++i)
            d |= (static_cast<uint32_t>(table) >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i;
          return d;
        });
  }
}

}  // namespace
}  // namespace simgpu
