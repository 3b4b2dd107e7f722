// Arithmetic in f32 and f64: roundings, .ftz, .sat, comparisons, approximations.
#include <cfenv>

#include "tests/simgpu/op_test.h"

namespace simgpu {
namespace {

// f in the given rounding mode of the host, of values that the compiler does not know.
template <class T, class F>
T rounded(int mode, const F& f, T a, T b = 0, T c = 0) {
  volatile T x = a, y = b, z = c;
  std::fesetround(mode);
  const volatile T result = f(T(x), T(y), T(z));
  std::fesetround(FE_TONEAREST);
  return result;
}
const std::pair<std::string, int> kModes[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

template <class T>
void check_roundings(const std::string& t) {
  for (const auto& [name, mode] : kModes) {
    const std::string m = "." + name + t;
    const auto check = [&, mode = mode](const std::string& op, const auto& f) {
      check_op<T, T, T>(op + m + " d, a, b;", [&](T a, T b) { return rounded<T>(mode, f, a, b); });
    };
    check("add", [](T a, T b, T) { return T(a + b); });
    check("sub", [](T a, T b, T) { return T(a - b); });
    check("mul", [](T a, T b, T) { return T(a * b); });
    check("div", [](T a, T b, T) { return T(a / b); });
    check_op<T, T, T, T>("fma" + m + " d, a, b, c;", [mode = mode](T a, T b, T c) {
      return rounded<T>(
          mode, [](T x, T y, T z) { return std::fma(x, y, z); }, a, b, c);
    });
    check_op<T, T>("sqrt" + m + " d, a;", [mode = mode](T a) {
      return rounded<T>(
          mode, [](T x, T, T) { return std::sqrt(x); }, a);
    });
    check_op<T, T>("rcp" + m + " d, a;", [mode = mode](T a) {
      return rounded<T>(
          mode, [](T x, T, T) { return T(1) / x; }, a);
    });
  }
  check_op<T, T, T>("add" + t + " d, a, b;", [](T a, T b) { return T(a + b); });
  check_op<T, T, T>("mul" + t + " d, a, b;", [](T a, T b) { return T(a * b); });
}

TEST(SimgpuFloat, ArithmeticInEveryRounding) {
  check_roundings<float>(".f32");
  check_roundings<double>(".f64");
}

TEST(SimgpuFloat, AnAddIsNotFused) {
  // mul then add rounds twice; a fused one would differ for about one value in four.
  check_op<float, float, float, float>("mul.f32 d, a, b;\nadd.f32 d, d, c;", [](float a, float b, float c) {
    const volatile float product = a * b;
    return product + c;
  });
}

float flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

TEST(SimgpuFloat, FlushToZero) {
  check_op<float, float, float>("add.ftz.f32 d, a, b;", [](float a, float b) { return flush(flush(a) + flush(b)); });
  check_op<float, float, float>("mul.ftz.f32 d, a, b;", [](float a, float b) { return flush(flush(a) * flush(b)); });
  check_op<float, float, float, float>("fma.rn.ftz.f32 d, a, b, c;", [](float a, float b, float c) {
    return flush(std::fma(flush(a), flush(b), flush(c)));
  });
  check_op<float, float, float>("add.rz.ftz.f32 d, a, b;", [](float a, float b) {
    return flush(rounded<float>(
        FE_TOWARDZERO, [](float x, float y, float) { return x + y; }, flush(a), flush(b)));
  });
  check_op<float, float>("abs.ftz.f32 d, a;", [](float a) { return std::fabs(flush(a)); });
  check_op<uint32_t, float, float>("setp.gt.ftz.f32 p, a, b;\nselp.u32 d, 1, 0, p;",
                                   [](float a, float b) { return uint32_t{flush(a) > flush(b)}; });
}

TEST(SimgpuFloat, Saturation) {
  const auto saturate = [](float x) { return std::isnan(x) ? 0.0f : std::fmin(std::fmax(x, 0.0f), 1.0f); };
  const auto plus_zero = [](float x) { return x == 0 ? 0.0f : x; };
  check_op<float, float, float>("add.sat.f32 d, a, b;", [&](float a, float b) { return plus_zero(saturate(a + b)); });
  check_op<float, float, float, float>(
      "fma.rn.sat.f32 d, a, b, c;", [&](float a, float b, float c) { return plus_zero(saturate(std::fma(a, b, c))); });
}

TEST(SimgpuFloat, OneNan) {
  for (const std::string op : {"add.f32 d, a, b;", "mul.f32 d, a, b;", "add.rz.f32 d, a, b;", "max.NaN.f32 d, a, b;"}) {
    const auto results = run_op<float, float, float>(op, {{std::bit_cast<float>(0xffc01234u), 1.0f}});
    EXPECT_EQ(std::bit_cast<uint32_t>(results[0]), 0x7fffffffu) << op;
  }
}

template <class T>
T smaller(T a, T b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
}
template <class T>
T larger(T a, T b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}

template <class T>
void check_exact(const std::string& t) {
  check_op<T, T, T>("min" + t + " d, a, b;", smaller<T>);
  check_op<T, T, T>("max" + t + " d, a, b;", larger<T>);
  check_op<T, T>("neg" + t + " d, a;", [](T a) { return -a; });
  check_op<T, T>("abs" + t + " d, a;", [](T a) { return std::fabs(a); });
  check_op<T, T, T>("copysign" + t + " d, a, b;", [](T a, T b) { return std::copysign(b, a); });
}

TEST(SimgpuFloat, ExtremesAndSigns) {
  check_exact<float>(".f32");
  check_exact<double>(".f64");
  check_op<float, float, float>("min.NaN.f32 d, a, b;", [](float a, float b) {
    return std::isnan(a) || std::isnan(b) ? std::nanf("") : smaller(a, b);
  });
}

template <class T>
void check_comparisons(const std::string& t) {
  const auto check = [&](const std::string& order, const auto& holds) {
    check_op<uint32_t, T, T>("setp." + order + t + " p, a, b;\nselp.u32 d, 1, 0, p;",
                             [&](T a, T b) { return uint32_t{holds(a, b)}; });
  };
  const auto unordered = [](T a, T b) { return a != a || b != b; };
  check("eq", [](T a, T b) { return a == b; });
  check("ne", [&](T a, T b) { return !unordered(a, b) && a != b; });
  check("lt", [](T a, T b) { return a < b; });
  check("le", [](T a, T b) { return a <= b; });
  check("gt", [](T a, T b) { return a > b; });
  check("ge", [](T a, T b) { return a >= b; });
  if constexpr (std::is_floating_point_v<T>) {
    check("equ", [&](T a, T b) { return unordered(a, b) || a == b; });
    check("neu", [&](T a, T b) { return unordered(a, b) || a != b; });
    check("ltu", [&](T a, T b) { return unordered(a, b) || a < b; });
    check("leu", [&](T a, T b) { return unordered(a, b) || a <= b; });
    check("gtu", [&](T a, T b) { return unordered(a, b) || a > b; });
    check("geu", [&](T a, T b) { return unordered(a, b) || a >= b; });
    check("num", [&](T a, T b) { return !unordered(a, b); });
    check("nan", [&](T a, T b) { return unordered(a, b); });
  }
}

TEST(SimgpuCompare, EveryOrderOfEveryType) {
  check_comparisons<float>(".f32");
  check_comparisons<double>(".f64");
  check_comparisons<int16_t>(".s16");
  check_comparisons<uint16_t>(".u16");
  check_comparisons<int32_t>(".s32");
  check_comparisons<uint32_t>(".u32");
  check_comparisons<int64_t>(".s64");
  check_comparisons<uint64_t>(".u64");
  check_op<uint32_t, uint32_t, uint32_t>("setp.lo.u32 p, a, b;\nselp.u32 d, 1, 0, p;",
                                         [](uint32_t a, uint32_t b) { return uint32_t{a < b}; });
  check_op<uint32_t, uint32_t, uint32_t>("setp.hs.u32 p, a, b;\nselp.u32 d, 1, 0, p;",
                                         [](uint32_t a, uint32_t b) { return uint32_t{a >= b}; });
}

TEST(SimgpuCompare, CombinationsAndComplements) {
  check_op<uint32_t, int32_t, int32_t>(
      "setp.gt.s32 q, a, 0;\nsetp.lt.and.s32 p|q, a, b, q;\nselp.u32 d, 1, 0, p;\n@q add.u32 d, d, 2;",
      [](int32_t a, int32_t b) { return (a < b && a > 0 ? 1u : 0u) + (!(a < b) && a > 0 ? 2u : 0u); });
  check_op<uint32_t, int32_t, int32_t>("setp.gt.s32 q, a, 0;\nsetp.lt.or.s32 p, a, b, !q;\nselp.u32 d, 1, 0, p;",
                                       [](int32_t a, int32_t b) { return uint32_t{a < b || a <= 0}; });
  check_op<float, float, float>("set.ge.f32.f32 d, a, b;", [](float a, float b) { return a >= b ? 1.0f : 0.0f; });
  check_op<uint32_t, int32_t, int32_t>("set.lt.u32.s32 d, a, b;",
                                       [](int32_t a, int32_t b) { return a < b ? 0xffffffffu : 0u; });
}

TEST(SimgpuCompare, Classes) {
  const auto check = [](const std::string& name, const auto& holds) {
    check_op<uint32_t, float>("testp." + name + ".f32 p, a;\nselp.u32 d, 1, 0, p;",
                              [&](float a) { return uint32_t{holds(a)}; });
  };
  check("finite", [](float a) { return std::isfinite(a); });
  check("infinite", [](float a) { return std::isinf(a); });
  check("notanumber", [](float a) { return std::isnan(a); });
  check("subnormal", [](float a) { return std::fpclassify(a) == FP_SUBNORMAL; });
}

// Within two units in the last place of the true value.
template <class F>
void check_close(const std::string& instruction, const F& f) {
  std::vector<std::tuple<float>> cases;
  for (float x = 0.01f; x < 50; x *= 1.13f) cases.push_back({x});
  const auto results = run_op<float, float>(instruction, cases);
  for (size_t i = 0; i < cases.size(); ++i) {
    const double expected = f(double{std::get<0>(cases[i])});
    EXPECT_NEAR(results[i], expected, std::fabs(expected) * 2.4e-7) << instruction << " of " << std::get<0>(cases[i]);
  }
}

TEST(SimgpuFloat, Approximations) {
  check_close("ex2.approx.f32 d, a;", [](double x) { return std::exp2(x); });
  check_close("ex2.approx.ftz.f32 d, a;", [](double x) { return std::exp2(x); });
  check_close("lg2.approx.f32 d, a;", [](double x) { return std::log2(x); });
  check_close("rcp.approx.ftz.f32 d, a;", [](double x) { return 1 / x; });
  check_close("rsqrt.approx.f32 d, a;", [](double x) { return 1 / std::sqrt(x); });
  check_close("sqrt.approx.f32 d, a;", [](double x) { return std::sqrt(x); });
  check_close("sin.approx.f32 d, a;", [](double x) { return std::sin(x); });
  check_close("cos.approx.f32 d, a;", [](double x) { return std::cos(x); });
  check_close("tanh.approx.f32 d, a;", [](double x) { return std::tanh(x); });
  check_close("div.approx.f32 d, a, 0f40400000;", [](double x) { return x / 3; });
  check_close("div.full.f32 d, a, 0f40400000;", [](double x) { return x / 3; });
  const float infinity = std::numeric_limits<float>::infinity();
  const auto at_zero = run_op<float, float>("lg2.approx.f32 d, a;", {{0.0f}, {infinity}, {-1.0f}});
  EXPECT_EQ(at_zero[0], -infinity);
  EXPECT_EQ(at_zero[1], infinity);
  EXPECT_TRUE(std::isnan(at_zero[2]));
}

// libdevice's division and square root in f64 start from these.
TEST(SimgpuFloat, UpperHalvesOfReciprocals) {
  for (const double x : {3.0, 0.7, -1e10, 1e-300}) {
    const double r = run_op<double, double>("rcp.approx.ftz.f64 d, a;", {{x}})[0];
    EXPECT_NEAR(r * x, 1.0, 1e-5);
    EXPECT_EQ(static_cast<uint32_t>(std::bit_cast<uint64_t>(r)), 0u);
  }
  const double r = run_op<double, double>("rsqrt.approx.ftz.f64 d, a;", {{2.0}})[0];
  EXPECT_NEAR(r * r * 2, 1.0, 1e-5);
}

}  // namespace
}  // namespace simgpu
