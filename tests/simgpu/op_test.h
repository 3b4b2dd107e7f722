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
using BitsOf = std::conditional_t<
    sizeof(T) == 8, uint64_t,
    std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

// A whole kernel `k` around its body. Parameters are u64.
std::string kernel_text(int parameters, const std::string& body);
LaunchStats run_kernel(Memory& memory, const std::string& text, const LaunchShape& shape,
                       const std::vector<uint64_t>& parameters, const Settings& settings = {});

// The values of one operand over all cases.
struct Column {
  size_t width = 0;  // bytes of a value
  bool is_signed = false;
  std::vector<std::byte> bytes;
};
// The results, `width` bytes each. In the instruction `d` is the result, `a`, `b`, `c`, `e` are the operands, `p`, `q`
// predicates, `t` is a b32.
std::vector<std::byte> run_columns(const std::string& instruction, size_t width, size_t cases,
                                   const std::vector<Column>& operands);

template <size_t I, class... A>
Column column(const std::vector<std::tuple<A...>>& cases) {
  using T = std::tuple_element_t<I, std::tuple<A...>>;
  Column result{sizeof(T), std::is_signed_v<T>, std::vector<std::byte>(cases.size() * sizeof(T))};
  for (size_t i = 0; i < cases.size(); ++i)
    std::memcpy(&result.bytes[i * sizeof(T)], &std::get<I>(cases[i]), sizeof(T));
  return result;
}

template <class R, class... A>
std::vector<R> run_op(const std::string& instruction, const std::vector<std::tuple<A...>>& cases) {
  const auto columns = [&]<size_t... I>(std::index_sequence<I...>) { return std::vector<Column>{column<I>(cases)...}; };
  const std::vector<std::byte> bytes =
      run_columns(instruction, sizeof(R), cases.size(), columns(std::index_sequence_for<A...>()));
  std::vector<R> results(cases.size());
  std::memcpy(results.data(), bytes.data(), bytes.size());
  return results;
}

template <class T>
std::vector<T> edges() {
  if constexpr (std::is_integral_v<T>) {
    using L = std::numeric_limits<T>;
    return {0,
            1,
            2,
            3,
            7,
            31,
            32,
            33,
            63,
            64,
            100,
            static_cast<T>(-1),
            static_cast<T>(-2),
            static_cast<T>(-7),
            L::min(),
            L::max(),
            static_cast<T>(L::max() - 1),
            static_cast<T>(L::min() + 1),
            static_cast<T>(L::max() / 2 + 1),
            static_cast<T>(0x5a5a5a5a5a5a5a5aull)};
  } else if constexpr (std::is_floating_point_v<T>) {
    using L = std::numeric_limits<T>;
    return {0,
            T(-0.0),
            1,
            -1,
            T(0.5),
            T(-0.5),
            T(1.5),
            T(2.5),
            T(-2.5),
            T(0.1),
            T(3.7),
            T(-123.456),
            T(1e10),
            T(-3e9),
            T(2147483648.0),
            T(-9.3e18),
            T(1.9e19),
            L::max(),
            L::lowest(),
            L::min(),
            -L::min(),
            L::denorm_min(),
            -L::denorm_min(),
            L::min() / 2,
            L::infinity(),
            -L::infinity(),
            L::quiet_NaN(),
            T(1) + L::epsilon(),
            T(0.25)};
  } else {  // 16-bit floats: zeros, one, denormals, largest, infinities, NaN, ordinary ones
    return {{0},      {0x8000}, {0x3c00}, {0x3f80}, {0xbf80}, {0x0001}, {0x8001},
            {0x007f}, {0x0080}, {0x03ff}, {0x0400}, {0x7bff}, {0x7f7f}, {0x7c00},
            {0xfc00}, {0x7f80}, {0xff80}, {0x7fff}, {0x4049}, {0xc2a1}, {0x4248}};
  }
}

constexpr unsigned kSeed = 20260713;

// Random bits, so that floats have all magnitudes.
template <class T>
T random_value(std::mt19937_64& random) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(random()));
}

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
uint64_t shown(T x) {
  return std::bit_cast<BitsOf<T>>(x);
}

// Apart from check_cases, so that it is compiled once for each list of types and not for each reference.
template <class R, class... A>
void compare(const std::string& instruction, const std::vector<std::tuple<A...>>& cases,
             const std::vector<R>& expected) {
  SCOPED_TRACE(instruction + ", seed " + std::to_string(kSeed));
  const std::vector<R> results = run_op<R, A...>(instruction, cases);
  int wrong = 0;
  for (size_t i = 0; i < cases.size() && wrong < 5; ++i) {
    if (same(results[i], expected[i])) continue;
    ++wrong;
    std::string operands;
    std::apply([&](const auto&... a) { ((operands += " " + std::to_string(shown(a))), ...); }, cases[i]);
    ADD_FAILURE() << "operands (bits)" << operands << ": got " << shown(results[i]) << ", expected "
                  << shown(expected[i]);
  }
}

template <class R, class... A, class F>
void check_cases(const std::string& instruction, const std::vector<std::tuple<A...>>& cases, const F& reference) {
  std::vector<R> expected;
  expected.reserve(cases.size());
  for (const auto& one : cases) expected.push_back(std::apply(reference, one));
  compare<R, A...>(instruction, cases, expected);
}

// The instruction against reference(a, b, …), over edges and random values.
template <class R, class... A, class F>
void check_op(const std::string& instruction, const F& reference) {
  check_cases<R, A...>(instruction, cases_of<A...>(), reference);
}

// The kind of the fault that the call throws; fails the test if it throws none.
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
