// op_test: runs one PTX instruction over many cases, one thread each, and compares with the host.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "tests/simgpu/half.h"
#include "tests/simgpu/launch.h"

namespace simgpu {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

// A whole kernel `k` around its body. Parameters are u64.
inline std::string kernel_text(int parameters, const std::string& body) {
  std::string text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(";
  for (int i = 0; i < parameters; ++i) text += (i > 0 ? ", " : "") + std::string(".param .u64 p") + std::to_string(i);
  return text + ")\n{\n" + body + "\nret;\n}\n";
}

inline LaunchStats run_kernel(Memory& memory, const std::string& text, const LaunchShape& shape, const std::vector<uint64_t>& parameters, const Settings& settings = {}) {
  const Module module(text, memory);
  return launch(memory, *module.find("k"), shape, parameters.data(), settings);
}

// The PTX for one instruction: `d` is the result, `a`, `b`, `c`, `e` the operands, `p`, `q` predicates, `t` a b32.
template <class R, class... A>
std::string op_text(const std::string& instruction) {
  const auto declare = [](const std::string& name, size_t bytes) { return ".reg .b" + std::to_string(bytes < 2 ? 16 : 8 * bytes) + " " + name + ";\n"; };
  std::string body = ".reg .b64 base, at;\n.reg .b32 i, n, t;\n.reg .pred p, q, outside;\n" + declare("d", sizeof(R));
  body += "mov.u32 i, %ctaid.x;\nmov.u32 n, %tid.x;\nmad.lo.u32 i, i, 128, n;\nld.param.u32 n, [p1];\nsetp.ge.u32 outside, i, n;\n@outside bra END;\n";
  constexpr size_t sizes[] = {sizeof(A)...};
  constexpr bool is_signed[] = {std::is_signed_v<A>...};
  for (size_t k = 0; k < sizeof...(A); ++k) {
    const std::string name(1, "abce"[k]), bytes = std::to_string(sizes[k]);
    body += declare(name, sizes[k]) + "ld.param.u64 base, [p" + std::to_string(k + 2) + "];\nmad.wide.u32 at, i, " + bytes + ", base;\nld.global." +
            (sizes[k] == 1 && is_signed[k] ? "s" : "u") + std::to_string(8 * sizes[k]) + " " + name + ", [at];\n";
  }
  body += instruction + "\nld.param.u64 base, [p0];\nmad.wide.u32 at, i, " + std::to_string(sizeof(R)) + ", base;\nst.global.u" + std::to_string(8 * sizeof(R)) + " [at], d;\nEND:";
  return kernel_text(2 + static_cast<int>(sizeof...(A)), body);
}

template <class R, class... A>
std::vector<R> run_op(const std::string& instruction, const std::vector<std::tuple<A...>>& cases) {
  Memory memory;
  const size_t n = cases.size();
  auto* results = static_cast<R*>(memory.allocate(n * sizeof(R)));
  std::vector<uint64_t> parameters = {reinterpret_cast<uint64_t>(results), n};
  const auto upload = [&]<size_t I>() {
    using T = std::tuple_element_t<I, std::tuple<A...>>;
    auto* values = static_cast<T*>(memory.allocate(n * sizeof(T)));
    for (size_t i = 0; i < n; ++i) values[i] = std::get<I>(cases[i]);
    parameters.push_back(reinterpret_cast<uint64_t>(values));
  };
  [&]<size_t... I>(std::index_sequence<I...>) { (upload.template operator()<I>(), ...); }(std::index_sequence_for<A...>());
  LaunchShape shape;
  shape.block.x = 128;
  shape.grid.x = static_cast<uint32_t>((n + 127) / 128);
  run_kernel(memory, op_text<R, A...>(instruction), shape, parameters);
  return {results, results + n};
}

template <class T>
std::vector<T> edges() {
  if constexpr (std::is_integral_v<T>) {
    using L = std::numeric_limits<T>;
    return {0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 100, static_cast<T>(-1), static_cast<T>(-2), static_cast<T>(-7), L::min(), L::max(), static_cast<T>(L::max() - 1),
            static_cast<T>(L::min() + 1), static_cast<T>(L::max() / 2 + 1), static_cast<T>(0x5a5a5a5a5a5a5a5aull)};
  } else if constexpr (std::is_floating_point_v<T>) {
    using L = std::numeric_limits<T>;
    return {0, T(-0.0), 1, -1, T(0.5), T(-0.5), T(1.5), T(2.5), T(-2.5), T(0.1), T(3.7), T(-123.456), T(1e10), T(-3e9), T(2147483648.0), T(-9.3e18), T(1.9e19), L::max(), L::lowest(), L::min(),
            -L::min(), L::denorm_min(), -L::denorm_min(), L::min() / 2, L::infinity(), -L::infinity(), L::quiet_NaN(), T(1) + L::epsilon(), T(0.25)};
  } else {  // 16-bit floats: zeros, one, denormals, largest, infinities, NaN, ordinary ones
    return {{0}, {0x8000}, {0x3c00}, {0x3f80}, {0xbf80}, {0x0001}, {0x8001}, {0x007f}, {0x0080}, {0x03ff}, {0x0400}, {0x7bff}, {0x7f7f}, {0x7c00}, {0xfc00}, {0x7f80}, {0xff80}, {0x7fff}, {0x4049}, {0xc2a1}, {0x4248}};
  }
}

constexpr unsigned kSeed = 20260713;

// Random bits, so that floats have all magnitudes.
template <class T>
T random_value(std::mt19937_64& random) { return std::bit_cast<T>(static_cast<BitsOf<T>>(random())); }

// All pairs, triples, … of the edges (every few of them where there are too many), then random ones.
template <class... A>
std::vector<std::tuple<A...>> cases_of() {
  std::vector<std::tuple<A...>> cases;
  const auto lists = std::make_tuple(edges<A>()...);
  size_t total = 1;
  std::apply([&](const auto&... list) { ((total *= list.size()), ...); }, lists);
  const size_t step = total / 4000 + 1;
  for (size_t index = 0; index < total; index += step) {
    size_t rest = index;
    const auto pick = [&](const auto& list) {
      const size_t i = rest % list.size();
      rest /= list.size();
      return list[i];
    };
    cases.push_back(std::apply([&](const auto&... list) { return std::tuple<A...>{pick(list)...}; }, lists));
  }
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 501; ++i) cases.push_back({random_value<A>(random)...});
  return cases;
}

template <class T>
bool same(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  }
  return std::bit_cast<BitsOf<T>>(x) == std::bit_cast<BitsOf<T>>(y);
}
template <class T>
uint64_t shown(T x) { return std::bit_cast<BitsOf<T>>(x); }

template <class R, class... A, class F>
void check_cases(const std::string& instruction, const std::vector<std::tuple<A...>>& cases, const F& reference) {
  SCOPED_TRACE(instruction + ", seed " + std::to_string(kSeed));
  const std::vector<R> results = run_op<R, A...>(instruction, cases);
  int wrong = 0;
  for (size_t i = 0; i < cases.size() && wrong < 5; ++i) {
    const R expected = std::apply(reference, cases[i]);
    if (same(results[i], expected)) continue;
    ++wrong;
    std::string operands;
    std::apply([&](const auto&... a) { ((operands += " " + std::to_string(shown(a))), ...); }, cases[i]);
    ADD_FAILURE() << "operands (bits)" << operands << ": got " << shown(results[i]) << ", expected " << shown(expected);
  }
}

// The instruction against reference(a, b, …), over edges and random values.
template <class R, class... A, class F>
void check_op(const std::string& instruction, const F& reference) { check_cases<R, A...>(instruction, cases_of<A...>(), reference); }

// The kind of the fault that this throws; fails the test if it throws none.
template <class F>
FaultKind fault_of(const F& f) {
  try {
    f();
  } catch (const Fault& fault) {
    return fault.kind();
  }
  ADD_FAILURE() << "no fault was found";
  return FaultKind::limit;
}

}  // namespace simgpu
