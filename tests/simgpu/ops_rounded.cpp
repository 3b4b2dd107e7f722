// ops_rounded: arithmetic rounded toward zero, down or up: by the host's rounding mode, lane by lane.
#include <cmath>

#include "tests/simgpu/decoder.h"
#include "tests/simgpu/flush.h"
#include "tests/simgpu/lanes.h"
#include "tests/simgpu/rounding.h"

namespace simgpu {
namespace {

enum class Operation : uint8_t { add, sub, mul, fma, div, sqrt, rcp };
constexpr uint8_t kFtz = 0x80, kSat = 0x40;

template <class T, Operation kOperation>
T compute(T a, T b, T c) {
  if constexpr (kOperation == Operation::add) return a + b;
  if constexpr (kOperation == Operation::sub) return a - b;
  if constexpr (kOperation == Operation::mul) return a * b;
  if constexpr (kOperation == Operation::fma) return std::fma(a, b, c);
  if constexpr (kOperation == Operation::div) return a / b;
  if constexpr (kOperation == Operation::sqrt) return std::sqrt(a);
  if constexpr (kOperation == Operation::rcp) return T{1} / a;
}

template <class T, Operation kOperation>
void run_rounded(Warp& warp, const Instruction& in, uint32_t mask) {
  const auto rounding = static_cast<Rounding>(in.modifier & 3);
  const bool ftz = (in.modifier & kFtz) != 0, sat = (in.modifier & kSat) != 0;
  for_active(mask, [&](int lane) {
    T x[3] = {};
    for (int i = 0; i < 3; ++i) {
      x[i] = from_slot<T>(warp.slots<Slot<T>>(in.r[i + 1])[lane]);
      if (ftz) x[i] = flushed(x[i]);
    }
    T result;
    {
      const RoundingScope scope(rounding);
      result = opaque(compute<T, kOperation>(opaque(x[0]), opaque(x[1]), opaque(x[2])));
    }
    if (ftz) result = flushed(result);
    warp.slots<Slot<T>>(in.r[0])[lane] = to_slot<T>(sat ? saturated(result) : canonical(result));
  });
}

template <class T>
Handler handler(const Opcode& op) {
  if (op.is({"add"})) return run_rounded<T, Operation::add>;
  if (op.is({"sub"})) return run_rounded<T, Operation::sub>;
  if (op.is({"mul"})) return run_rounded<T, Operation::mul>;
  if (op.is({"fma", "mad"})) return run_rounded<T, Operation::fma>;
  if (op.is({"div"})) return run_rounded<T, Operation::div>;
  if (op.is({"sqrt"})) return run_rounded<T, Operation::sqrt>;
  return run_rounded<T, Operation::rcp>;
}

}  // namespace

bool decode_rounded(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const Type type = op.last_type();
  if (!op.is({"add", "sub", "mul", "fma", "mad", "div", "sqrt", "rcp"}) || (type != Type::f32 && type != Type::f64))
    return false;
  if (op.has("approx") || op.has("full")) return false;
  op.take_type();
  const Rounding rounding = op.take("rz")   ? Rounding::zero
                            : op.take("rm") ? Rounding::down
                            : op.take("rp") ? Rounding::up
                                            : Rounding::nearest_even;
  const bool ftz = type == Type::f32 && op.take("ftz");
  const bool sat = type == Type::f32 && op.is({"add", "sub", "mul", "fma", "mad"}) && op.take("sat");
  const size_t sources = op.is({"fma", "mad"}) ? 3 : op.is({"sqrt", "rcp"}) ? 1 : 2;
  if (in.operands.size() != sources + 1) d.fail("unknown form of " + std::string(in.opcode));
  uint32_t s[3] = {};
  for (size_t i = 0; i < sources; ++i) s[i] = d.source(in.operands[i + 1], type);
  for (size_t i = sources; i < 3; ++i) s[i] = s[0];
  d.emit(type == Type::f32 ? handler<float>(op) : handler<double>(op),
         {d.result(in.operands[0], type), s[0], s[1], s[2]})
      .modifier = static_cast<uint8_t>(static_cast<uint8_t>(rounding) | (ftz ? kFtz : 0) | (sat ? kSat : 0));
  return true;
}

}  // namespace simgpu
