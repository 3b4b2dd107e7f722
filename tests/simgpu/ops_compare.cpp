// ops_compare: setp, set, testp.
#include <bit>
#include <cmath>

#include "tests/simgpu/decoder.h"
#include "tests/simgpu/half.h"
#include "tests/simgpu/lanes.h"

namespace simgpu {
namespace {

enum class Order : uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
constexpr std::string_view kOrders[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                        "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
enum class Combine : uint8_t { none, with_and, with_or, with_xor };

template <Order kOrder, class T>
bool compare(T a, T b) {
  if constexpr (kOrder == Order::eq) return a == b;
  if constexpr (kOrder == Order::ne) return a < b || a > b;  // false for NaN
  if constexpr (kOrder == Order::lt) return a < b;
  if constexpr (kOrder == Order::le) return a <= b;
  if constexpr (kOrder == Order::gt) return a > b;
  if constexpr (kOrder == Order::ge) return a >= b;
  if constexpr (kOrder == Order::equ) return !(a < b || a > b);
  if constexpr (kOrder == Order::neu) return !(a == b);
  if constexpr (kOrder == Order::ltu) return !(a >= b);
  if constexpr (kOrder == Order::leu) return !(a > b);
  if constexpr (kOrder == Order::gtu) return !(a <= b);
  if constexpr (kOrder == Order::geu) return !(a < b);
  if constexpr (kOrder == Order::num) return a == a && b == b;
  if constexpr (kOrder == Order::nan) return a != a || b != b;
}

constexpr uint8_t kFtz = 0x10;

// The predicate r[0] and, if r[1] is one, its complement; combined with the predicate r[4].
template <Order kOrder, class T>
void run_setp(Warp& warp, const Instruction& in, uint32_t mask) {
  const auto *a = warp.slots<Slot<T>>(in.r[2]), *b = warp.slots<Slot<T>>(in.r[3]);
  uint32_t holds;
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) {
    holds =
        mask_of([&](int lane) { return compare<kOrder>(widen(from_slot<T>(a[lane])), widen(from_slot<T>(b[lane]))); });
  } else if (std::is_same_v<T, float> && (in.modifier & kFtz) != 0) {
    const auto flush = [](T x) {
      return std::abs(static_cast<float>(x)) < std::numeric_limits<float>::min() ? T{0} : x;
    };
    holds =
        mask_of([&](int lane) { return compare<kOrder>(flush(from_slot<T>(a[lane])), flush(from_slot<T>(b[lane]))); });
  } else {
    holds = mask_of([&](int lane) { return compare<kOrder>(from_slot<T>(a[lane]), from_slot<T>(b[lane])); });
  }
  uint32_t fails = ~holds;
  const auto combine = static_cast<Combine>(in.modifier & 0xf);
  if (combine != Combine::none) {
    const uint32_t c = warp.predicate(in.r[4]);
    const auto mix = [&](uint32_t x) {
      return combine == Combine::with_and ? x & c : combine == Combine::with_or ? x | c : x ^ c;
    };
    holds = mix(holds);
    fails = mix(fails);
  }
  set_predicate(warp.predicate(in.r[0]), holds, mask);
  if (in.value != 0) set_predicate(warp.predicate(in.r[1]), fails, mask);
}

template <class T, size_t... I>
Handler by_order(size_t order, std::index_sequence<I...>) {
  constexpr Handler handlers[] = {run_setp<static_cast<Order>(I), T>...};
  return order < sizeof...(I) ? handlers[order] : nullptr;
}
// Integers know the first six.
template <class T>
Handler integer_order(size_t order) {
  return by_order<T>(order, std::make_index_sequence<6>());
}
template <class T>
Handler float_order(size_t order) {
  return by_order<T>(order, std::make_index_sequence<14>());
}

Handler setp_handler(Type type, size_t order) {
  switch (type) {
    case Type::b16:
    case Type::u16:
      return integer_order<uint16_t>(order);
    case Type::s16:
      return integer_order<int16_t>(order);
    case Type::b32:
    case Type::u32:
      return integer_order<uint32_t>(order);
    case Type::s32:
      return integer_order<int32_t>(order);
    case Type::b64:
    case Type::u64:
      return integer_order<uint64_t>(order);
    case Type::s64:
      return integer_order<int64_t>(order);
    case Type::f32:
      return float_order<float>(order);
    case Type::f64:
      return float_order<double>(order);
    case Type::f16:
      return float_order<Half>(order);
    case Type::bf16:
      return float_order<BFloat>(order);
    default:
      return nullptr;
  }
}

// Unsigned lo, ls, hi, hs are other names.
size_t take_order(Opcode& op) {
  for (size_t i = 0; i < std::size(kOrders); ++i) {
    if (op.take(kOrders[i])) return i;
  }
  constexpr std::string_view unsigned_names[] = {"lo", "ls", "hi", "hs"};
  for (size_t i = 0; i < 4; ++i) {
    if (op.take(unsigned_names[i])) return static_cast<size_t>(Order::lt) + i;
  }
  return std::size(kOrders);
}

enum class Test : uint8_t { finite, infinite, number, notanumber, normal, subnormal };
constexpr std::string_view kTests[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
template <class T>
void run_testp(Warp& warp, const Instruction& in, uint32_t mask) {
  const auto* a = warp.slots<Slot<T>>(in.r[1]);
  const uint32_t holds = mask_of([&](int lane) {
    const int kind = std::fpclassify(from_slot<T>(a[lane]));
    switch (static_cast<Test>(in.modifier)) {
      case Test::finite:
        return kind != FP_INFINITE && kind != FP_NAN;
      case Test::infinite:
        return kind == FP_INFINITE;
      case Test::number:
        return kind != FP_NAN;
      case Test::notanumber:
        return kind == FP_NAN;
      case Test::normal:
        return kind == FP_NORMAL || kind == FP_ZERO;
      case Test::subnormal:
        return kind == FP_SUBNORMAL;
    }
    return false;
  });
  set_predicate(warp.predicate(in.r[0]), holds, mask);
}

// setp, or set, whose result is a number: 1.0 or 0.0, all ones or 0.
void decode_set(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const auto& o = in.operands;
  const bool number = op.is({"set"});
  const Type type = op.take_type(), result = number ? op.take_type() : Type::pred;
  const Handler run = setp_handler(type, take_order(op));
  const bool ftz = type == Type::f32 && op.take("ftz");
  const Combine combine = op.take("and")   ? Combine::with_and
                          : op.take("or")  ? Combine::with_or
                          : op.take("xor") ? Combine::with_xor
                                           : Combine::none;
  if (run == nullptr || (number && result != Type::f32 && result != Type::u32 && result != Type::s32))
    d.fail("unknown comparison " + std::string(in.opcode));
  const uint32_t a = d.source(o.at(1), type), b = d.source(o.at(2), type);
  const uint32_t c = combine == Combine::none ? 0 : d.predicate_source(o.at(3));
  const bool both = !o[0].second.empty();
  const uint32_t predicate = number ? d.temporary_predicate() : d.predicate_result(o[0].name);
  Instruction& out = d.emit(run, {predicate, both ? d.predicate_result(o[0].second) : 0, a, b, c});
  out.modifier = static_cast<uint8_t>(static_cast<uint8_t>(combine) | (ftz ? kFtz : 0));
  out.value = both ? 1 : 0;
  if (number) {
    const uint32_t yes = d.constant(result == Type::f32 ? std::bit_cast<uint32_t>(1.0f) : 0xffffffffu, Type::b32);
    d.emit(run_select_32, {d.result(o[0], result), yes, d.constant(0, Type::b32), predicate});
  }
}

}  // namespace

bool decode_compare(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const auto& o = in.operands;
  if (op.is({"testp"})) {
    const Type type = op.take_type();
    if (type != Type::f32 && type != Type::f64) d.fail("unknown type of " + std::string(in.opcode));
    uint8_t test = 0;
    while (test < std::size(kTests) && !op.take(kTests[test])) ++test;
    if (test == std::size(kTests)) d.fail("unknown test of " + std::string(in.opcode));
    const uint32_t a = d.source(o.at(1), type);
    d.emit(type == Type::f32 ? run_testp<float> : run_testp<double>, {d.predicate_result(o[0].name), a}).modifier =
        test;
    return true;
  }
  if (!op.is({"setp", "set"})) return false;
  decode_set(d, op, in);
  return true;
}

}  // namespace simgpu
