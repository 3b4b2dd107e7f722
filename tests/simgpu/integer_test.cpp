// Integer arithmetic, with and without carry.
#include "tests/simgpu/op_test.h"

namespace simgpu {
namespace {

using Int128 = __int128;
using UInt128 = unsigned __int128;

template <class T>
std::string type_name() {
  return (std::is_signed_v<T> ? "s" : "u") + std::to_string(8 * sizeof(T));
}

// Through 128 bits, where nothing overflows, and cut off.
template <class T>
void check_ring() {
  const std::string t = type_name<T>();
  check_op<T, T, T>("add." + t + " d, a, b;", [](T a, T b) { return static_cast<T>(Int128{a} + b); });
  check_op<T, T, T>("sub." + t + " d, a, b;", [](T a, T b) { return static_cast<T>(Int128{a} - b); });
  check_op<T, T, T>("mul.lo." + t + " d, a, b;",
                    [](T a, T b) { return static_cast<T>(static_cast<UInt128>(a) * static_cast<UInt128>(b)); });
  check_op<T, T, T>("mul.hi." + t + " d, a, b;", [](T a, T b) {
    return static_cast<T>((std::is_signed_v<T> ? static_cast<UInt128>(Int128{a} * Int128{b})
                                               : static_cast<UInt128>(a) * static_cast<UInt128>(b)) >>
                          (8 * sizeof(T)));
  });
  check_op<T, T, T, T>("mad.lo." + t + " d, a, b, c;", [](T a, T b, T c) {
    return static_cast<T>(static_cast<UInt128>(a) * static_cast<UInt128>(b) + static_cast<UInt128>(c));
  });
  check_op<T, T, T>("min." + t + " d, a, b;", [](T a, T b) { return std::min(a, b); });
  check_op<T, T, T>("max." + t + " d, a, b;", [](T a, T b) { return std::max(a, b); });
  check_op<T, T, T>("div." + t + " d, a, b;",
                    [](T a, T b) { return b == 0 ? static_cast<T>(-1) : static_cast<T>(Int128{a} / b); });
  check_op<T, T, T>("rem." + t + " d, a, b;", [](T a, T b) { return b == 0 ? a : static_cast<T>(Int128{a} % b); });
  check_op<T, T, T, T>("sad." + t + " d, a, b, c;", [](T a, T b, T c) {
    return static_cast<T>(Int128{c} + (a < b ? Int128{b} - a : Int128{a} - b));
  });
  if constexpr (std::is_signed_v<T>) {
    check_op<T, T>("neg." + t + " d, a;", [](T a) { return static_cast<T>(-Int128{a}); });
    check_op<T, T>("abs." + t + " d, a;", [](T a) { return static_cast<T>(a < 0 ? -Int128{a} : Int128{a}); });
  }
}

TEST(SimgpuInteger, RingOperationsOfEveryWidth) {
  check_ring<uint16_t>();
  check_ring<int16_t>();
  check_ring<uint32_t>();
  check_ring<int32_t>();
  check_ring<uint64_t>();
  check_ring<int64_t>();
}

TEST(SimgpuInteger, ProductsOfTwiceTheWidth) {
  check_op<int64_t, int32_t, int32_t>("mul.wide.s32 d, a, b;", [](int32_t a, int32_t b) { return int64_t{a} * b; });
  check_op<uint64_t, uint32_t, uint32_t>("mul.wide.u32 d, a, b;",
                                         [](uint32_t a, uint32_t b) { return uint64_t{a} * b; });
  check_op<int32_t, int16_t, int16_t>("mul.wide.s16 d, a, b;", [](int16_t a, int16_t b) { return a * b; });
  check_op<uint32_t, uint16_t, uint16_t>("mul.wide.u16 d, a, b;",
                                         [](uint16_t a, uint16_t b) { return uint32_t{a} * b; });
  check_op<int64_t, int32_t, int32_t, int64_t>("mad.wide.s32 d, a, b, c;", [](int32_t a, int32_t b, int64_t c) {
    return static_cast<int64_t>(Int128{a} * b + c);
  });
  check_op<uint64_t, uint32_t, uint32_t, uint64_t>(
      "mad.wide.u32 d, a, b, c;", [](uint32_t a, uint32_t b, uint64_t c) { return uint64_t{a} * b + c; });
}

TEST(SimgpuInteger, HighHalvesOfProductsWithAddition) {
  check_op<uint32_t, uint32_t, uint32_t, uint32_t>("mad.hi.u32 d, a, b, c;", [](uint32_t a, uint32_t b, uint32_t c) {
    return static_cast<uint32_t>((uint64_t{a} * b >> 32) + c);
  });
  check_op<int32_t, int32_t, int32_t, int32_t>("mad.hi.s32 d, a, b, c;", [](int32_t a, int32_t b, int32_t c) {
    return static_cast<int32_t>((int64_t{a} * b >> 32) + c);
  });
  check_op<int32_t, int32_t, int32_t, int32_t>("mad.hi.sat.s32 d, a, b, c;", [](int32_t a, int32_t b, int32_t c) {
    return static_cast<int32_t>(std::clamp<int64_t>((int64_t{a} * b >> 32) + c, INT32_MIN, INT32_MAX));
  });
}

TEST(SimgpuInteger, Saturation) {
  const auto clamp = [](int64_t x) { return static_cast<int32_t>(std::clamp<int64_t>(x, INT32_MIN, INT32_MAX)); };
  check_op<int32_t, int32_t, int32_t>("add.sat.s32 d, a, b;",
                                      [&](int32_t a, int32_t b) { return clamp(int64_t{a} + b); });
  check_op<int32_t, int32_t, int32_t>("sub.sat.s32 d, a, b;",
                                      [&](int32_t a, int32_t b) { return clamp(int64_t{a} - b); });
}

TEST(SimgpuInteger, TwentyFourBits) {
  const auto low = [](int32_t x) {
    return static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(x) << 8) >> 8);
  };
  check_op<int32_t, int32_t, int32_t>("mul24.lo.s32 d, a, b;",
                                      [&](int32_t a, int32_t b) { return static_cast<int32_t>(low(a) * low(b)); });
  check_op<int32_t, int32_t, int32_t>(
      "mul24.hi.s32 d, a, b;", [&](int32_t a, int32_t b) { return static_cast<int32_t>(low(a) * low(b) >> 16); });
  check_op<uint32_t, uint32_t, uint32_t>("mul24.lo.u32 d, a, b;",
                                         [](uint32_t a, uint32_t b) { return (a & 0xffffff) * (b & 0xffffff); });
  check_op<uint32_t, uint32_t, uint32_t, uint32_t>("mad24.lo.u32 d, a, b, c;", [](uint32_t a, uint32_t b, uint32_t c) {
    return (a & 0xffffff) * (b & 0xffffff) + c;
  });
}

TEST(SimgpuInteger, DotProductsOfBytes) {
  const auto dot = [](const auto& x, const auto& y, uint32_t c) {
    for (int i = 0; i < 4; ++i) c += static_cast<uint32_t>(int32_t{x[i]} * int32_t{y[i]});
    return c;
  };
  check_op<uint32_t, uint32_t, uint32_t, uint32_t>("dp4a.u32.u32 d, a, b, c;", [&](uint32_t a, uint32_t b, uint32_t c) {
    return dot(std::bit_cast<std::array<uint8_t, 4>>(a), std::bit_cast<std::array<uint8_t, 4>>(b), c);
  });
  check_op<uint32_t, uint32_t, uint32_t, uint32_t>("dp4a.s32.u32 d, a, b, c;", [&](uint32_t a, uint32_t b, uint32_t c) {
    return dot(std::bit_cast<std::array<int8_t, 4>>(a), std::bit_cast<std::array<uint8_t, 4>>(b), c);
  });
}

TEST(SimgpuInteger, CarriesBuildWiderSums) {
  const std::string halves = ".reg .b32 al, ah, bl, bh;\nmov.b64 {al, ah}, a;\nmov.b64 {bl, bh}, b;\n";
  check_op<uint64_t, uint64_t, uint64_t>(halves + "add.cc.u32 al, al, bl;\naddc.u32 ah, ah, bh;\nmov.b64 d, {al, ah};",
                                         [](uint64_t a, uint64_t b) { return a + b; });
  check_op<uint64_t, uint64_t, uint64_t>(halves + "sub.cc.u32 al, al, bl;\nsubc.u32 ah, ah, bh;\nmov.b64 d, {al, ah};",
                                         [](uint64_t a, uint64_t b) { return a - b; });
  // The carry out of 64 bits, by way of addc.cc.
  check_op<uint32_t, uint64_t, uint64_t>(
      halves + "add.cc.u32 al, al, bl;\naddc.cc.u32 ah, ah, bh;\naddc.u32 d, 0, 0;",
      [](uint64_t a, uint64_t b) { return static_cast<uint32_t>((UInt128{a} + b) >> 64); });
  check_op<uint64_t, uint32_t, uint32_t, uint64_t>(
      ".reg .b32 cl, ch;\nmov.b64 {cl, ch}, c;\nmad.lo.cc.u32 cl, a, b, cl;\nmadc.hi.u32 ch, a, b, ch;\nmov.b64 d, "
      "{cl, ch};",
      [](uint32_t a, uint32_t b, uint64_t c) { return uint64_t{a} * b + c; });
}

}  // namespace
}  // namespace simgpu
