// cvt between all types, and arithmetic in 16-bit floats.
#include <cfenv>

#include "tests/simgpu/op_test.h"

namespace simgpu {
namespace {

template <class T>
std::string name() {
  if constexpr (std::is_same_v<T, float>)
    return "f32";
  else if constexpr (std::is_same_v<T, double>)
    return "f64";
  else if constexpr (std::is_same_v<T, Half>)
    return "f16";
  else if constexpr (std::is_same_v<T, BFloat>)
    return "bf16";
  else
    return (std::is_signed_v<T> ? "s" : "u") + std::to_string(8 * sizeof(T));
}

template <class To, class From>
void check_integers() {
  check_op<To, From>("cvt." + name<To>() + "." + name<From>() + " d, a;", [](From a) { return static_cast<To>(a); });
  check_op<To, From>("cvt.sat." + name<To>() + "." + name<From>() + " d, a;", [](From a) {
    using L = std::numeric_limits<To>;
    return static_cast<To>(std::min<__int128>(std::max<__int128>(a, L::min()), L::max()));
  });
}
template <class From>
void check_from_integer() {
  check_integers<uint8_t, From>();
  check_integers<int8_t, From>();
  check_integers<uint16_t, From>();
  check_integers<int16_t, From>();
  check_integers<uint32_t, From>();
  check_integers<int32_t, From>();
  check_integers<uint64_t, From>();
  check_integers<int64_t, From>();
}

TEST(SimgpuConvert, IntegersToIntegers) {
  check_from_integer<uint8_t>();
  check_from_integer<int8_t>();
  check_from_integer<uint16_t>();
  check_from_integer<int16_t>();
  check_from_integer<uint32_t>();
  check_from_integer<int32_t>();
  check_from_integer<uint64_t>();
  check_from_integer<int64_t>();
}

const std::pair<std::string, int> kModes[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

double to_whole(double x, int mode) {
  switch (mode) {
    case FE_TOWARDZERO:
      return std::trunc(x);
    case FE_DOWNWARD:
      return std::floor(x);
    case FE_UPWARD:
      return std::ceil(x);
    default:
      return std::nearbyint(x);
  }
}

// By long double, which holds every integer here.
template <class To, class From>
void check_to_integer() {
  for (const auto& [mode, host] : kModes) {
    check_op<To, From>("cvt." + mode + "i." + name<To>() + "." + name<From>() + " d, a;", [host = host](From a) {
      using L = std::numeric_limits<To>;
      const long double whole = to_whole(a, host);
      if (std::isnan(a))
        return sizeof(From) == 8 || sizeof(To) == 8 ? static_cast<To>(To{1} << (8 * sizeof(To) - 1)) : To{0};
      if (whole > static_cast<long double>(L::max())) return L::max();
      if (whole < static_cast<long double>(L::min())) return L::min();
      return static_cast<To>(whole);
    });
  }
}

TEST(SimgpuConvert, FloatsToIntegers) {
  check_to_integer<int32_t, float>();
  check_to_integer<uint32_t, float>();
  check_to_integer<int64_t, float>();
  check_to_integer<uint64_t, float>();
  check_to_integer<int32_t, double>();
  check_to_integer<uint32_t, double>();
  check_to_integer<int64_t, double>();
  check_to_integer<uint64_t, double>();
  check_to_integer<uint8_t, float>();
  check_to_integer<int16_t, float>();
}

template <class To, class From>
void check_to_float() {
  for (const auto& [mode, host] : kModes) {
    check_op<To, From>("cvt." + mode + "." + name<To>() + "." + name<From>() + " d, a;", [host = host](From a) {
      const volatile long double exact = a;
      std::fesetround(host);
      const volatile To result = static_cast<To>(exact);
      std::fesetround(FE_TONEAREST);
      return To(result);
    });
  }
}

TEST(SimgpuConvert, IntegersAndDoublesToFloats) {
  check_to_float<float, int32_t>();
  check_to_float<float, uint32_t>();
  check_to_float<float, int64_t>();
  check_to_float<float, uint64_t>();
  check_to_float<double, int64_t>();
  check_to_float<double, uint64_t>();
  check_to_float<double, int32_t>();
  check_to_float<float, uint8_t>();
  check_to_float<float, double>();
  check_op<double, float>("cvt.f64.f32 d, a;", [](float a) { return double{a}; });
}

float flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

TEST(SimgpuConvert, FloatsToWholeFloatsFlushedAndSaturated) {
  for (const auto& [mode, host] : kModes) {
    check_op<float, float>("cvt." + mode + "i.f32.f32 d, a;",
                           [host = host](float a) { return std::copysign(static_cast<float>(to_whole(a, host)), a); });
    check_op<double, double>("cvt." + mode + "i.f64.f64 d, a;",
                             [host = host](double a) { return std::copysign(to_whole(a, host), a); });
  }
  check_op<float, float>("cvt.ftz.f32.f32 d, a;", flush);
  check_op<double, float>("cvt.ftz.f64.f32 d, a;", [](float a) { return double{flush(a)}; });
  check_op<float, double>("cvt.rn.ftz.f32.f64 d, a;", [](double a) { return flush(static_cast<float>(a)); });
  check_op<int32_t, float>("cvt.rpi.ftz.s32.f32 d, a;", [](float a) {
    const double up = std::ceil(double{flush(a)});
    return std::isnan(a) ? 0 : static_cast<int32_t>(std::min(std::max(up, -2147483648.0), 2147483647.0));
  });
  check_op<float, float>("cvt.sat.f32.f32 d, a;", [](float a) { return a > 0 ? std::min(a, 1.0f) : 0.0f; });
}

// The nearest of all values of the format, ties to the one with an even last bit.
template <class H>
H nearest(double x) {
  if (std::isnan(x)) return {0x7fff};
  constexpr uint16_t infinity = std::is_same_v<H, Half> ? 0x7c00 : 0x7f80;
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double magnitude = std::fabs(x);
  const auto value = [](int bits) { return double{widen(H{static_cast<uint16_t>(bits)})}; };
  int low = 0, high = infinity;  // value(low) <= magnitude < value(high)
  if (std::isinf(x)) return {static_cast<uint16_t>(sign | infinity)};
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (value(middle) <= magnitude ? low : high) = middle;
  }
  const double top = high == infinity ? 2 * value(infinity - 1) - value(infinity - 2) : value(high);
  const double below = magnitude - value(low), above = top - magnitude;
  const int chosen = below < above || (below == above && low % 2 == 0) ? low : high;
  return {static_cast<uint16_t>(sign | chosen)};
}

// Independently of narrow() and widen().
double meaning(BFloat x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
double meaning(Half x) {
  const double sign = x.bits >> 15 != 0 ? -1 : 1, fraction = (x.bits & 0x3ff) / 1024.0;
  const int exponent = x.bits >> 10 & 31;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * INFINITY;
  return exponent == 0 ? sign * std::ldexp(fraction, -14) : sign * std::ldexp(1 + fraction, exponent - 15);
}

template <class H>
void check_all_halves() {
  std::vector<std::tuple<H>> all;
  for (int bits = 0; bits < 65536; ++bits) all.push_back({H{static_cast<uint16_t>(bits)}});
  check_cases<float, H>("cvt.f32." + name<H>() + " d, a;", all, [](H a) { return static_cast<float>(meaning(a)); });
  check_op<H, float>("cvt.rn." + name<H>() + ".f32 d, a;", [](float a) { return nearest<H>(a); });
  check_op<uint32_t, float, float>("cvt.rn." + name<H>() + "x2.f32 d, a, b;", [](float a, float b) {
    return uint32_t{nearest<H>(a).bits} << 16 | nearest<H>(b).bits;
  });
  check_op<H, float>("cvt.rz." + name<H>() + ".f32 d, a;", [](float a) {
    H result = nearest<H>(a);
    if (std::isfinite(a) && std::fabs(meaning(result)) > std::fabs(a)) --result.bits;
    return result;
  });
  check_op<H, float>("cvt.rn.relu." + name<H>() + ".f32 d, a;", [](float a) {
    return std::signbit(nearest<H>(a).bits == 0x7fff ? 0.0f : a) ? H{0} : nearest<H>(a);
  });
}

TEST(SimgpuConvert, SixteenBitFloats) {
  check_all_halves<Half>();
  check_all_halves<BFloat>();
}

bool is_nan(Half x) { return (x.bits & 0x7fff) > 0x7c00; }
bool is_nan(BFloat x) { return (x.bits & 0x7fff) > 0x7f80; }

template <class H>
void check_arithmetic() {
  const std::string t = "." + name<H>();
  const auto equal = [&](const std::string& op, const auto& cases, const auto& f) {
    using Case = typename std::decay_t<decltype(cases)>::value_type;
    const auto results = [&] {
      if constexpr (std::tuple_size_v<Case> == 2)
        return run_op<H, H, H>(op, cases);
      else
        return run_op<H, H, H, H>(op, cases);
    }();
    for (size_t i = 0; i < cases.size(); ++i) {
      const H expected = nearest<H>(std::apply(f, cases[i]));
      if (is_nan(expected))
        EXPECT_TRUE(is_nan(results[i])) << op << " case " << i;
      else
        EXPECT_EQ(results[i].bits, expected.bits) << op << " case " << i;
    }
  };
  equal("add" + t + " d, a, b;", cases_of<H, H>(), [](H a, H b) { return meaning(a) + meaning(b); });
  equal("sub.rn" + t + " d, a, b;", cases_of<H, H>(), [](H a, H b) { return meaning(a) - meaning(b); });
  equal("mul" + t + " d, a, b;", cases_of<H, H>(), [](H a, H b) { return meaning(a) * meaning(b); });
  equal("fma.rn" + t + " d, a, b, c;", cases_of<H, H, H>(),
        [](H a, H b, H c) { return meaning(a) * meaning(b) + meaning(c); });
  check_op<H, H>("neg" + t + " d, a;", [](H a) { return H{static_cast<uint16_t>(a.bits ^ 0x8000)}; });
  check_op<H, H>("abs" + t + " d, a;", [](H a) { return H{static_cast<uint16_t>(a.bits & 0x7fff)}; });
  check_op<uint32_t, H, H>("setp.lt" + t + " p, a, b;\nselp.u32 d, 1, 0, p;",
                           [](H a, H b) { return uint32_t{meaning(a) < meaning(b)}; });
}

TEST(SimgpuHalf, ArithmeticRoundsOnce) {
  check_arithmetic<Half>();
  check_arithmetic<BFloat>();
}

TEST(SimgpuHalf, PairsWorkOnBothHalves) {
  const uint32_t one_two = 0x40003f80u, three_four = 0x40804040u;  // bf16: (1, 2), (3, 4), lower half first
  const auto sum = run_op<uint32_t, uint32_t, uint32_t>("add.bf16x2 d, a, b;", {{one_two, three_four}});
  EXPECT_EQ(sum[0], 0x40c04080u);  // (4, 6)
  const auto fused = run_op<uint32_t, uint32_t, uint32_t>("fma.rn.bf16x2 d, a, b, a;", {{one_two, three_four}});
  EXPECT_EQ(fused[0], 0x41204080u);  // (4, 10)
}

}  // namespace
}  // namespace simgpu
