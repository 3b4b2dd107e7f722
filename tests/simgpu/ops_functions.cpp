// ops_functions: the approximations of the special function unit, here with the accuracy of the host's libm.
#include <cmath>

#include "tests/simgpu/decoder.h"
#include "tests/simgpu/flush.h"
#include "tests/simgpu/lanes.h"

namespace simgpu {
namespace {

// Computed in double and rounded once.
template <double (*kFunction)(double)>
struct Approximate {
  static float run(float a) { return static_cast<float>(kFunction(a)); }
};
double reciprocal(double a) { return 1.0 / a; }
double reciprocal_root(double a) { return 1.0 / std::sqrt(a); }
double root(double a) { return std::sqrt(a); }
double exp_2(double a) { return std::exp2(a); }
double log_2(double a) { return std::log2(a); }
double sine(double a) { return std::sin(a); }
double cosine(double a) { return std::cos(a); }
double hyperbolic_tangent(double a) { return std::tanh(a); }
struct Divide {
  static float run(float a, float b) { return a / b; }
};

// The f64 forms give the upper 32 bits of the result, as a start for Newton's method; their operand's lower 32 bits do
// not matter.
template <double (*kFunction)(double)>
struct UpperHalf {
  static double run(double a) {
    const double from_upper = std::bit_cast<double>(std::bit_cast<uint64_t>(a) & 0xffffffff00000000u);
    return std::bit_cast<double>(std::bit_cast<uint64_t>(kFunction(flushed(from_upper))) & 0xffffffff00000000u);
  }
};

template <double (*kFunction)(double)>
Handler approximation(bool ftz) {
  return ftz ? map_active<Modified<Approximate<kFunction>, true, false>, float>
             : map_active<Modified<Approximate<kFunction>, false, false>, float>;
}

Handler single(const Opcode& op, bool ftz) {
  if (op.is({"rcp"})) return approximation<reciprocal>(ftz);
  if (op.is({"rsqrt"})) return approximation<reciprocal_root>(ftz);
  if (op.is({"sqrt"})) return approximation<root>(ftz);
  if (op.is({"ex2"})) return approximation<exp_2>(ftz);
  if (op.is({"lg2"})) return approximation<log_2>(ftz);
  if (op.is({"sin"})) return approximation<sine>(ftz);
  if (op.is({"cos"})) return approximation<cosine>(ftz);
  return approximation<hyperbolic_tangent>(ftz);
}

}  // namespace

bool decode_functions(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  if (!op.is({"rcp", "rsqrt", "sqrt", "ex2", "lg2", "sin", "cos", "tanh", "div"})) return false;
  const Type type = op.last_type();
  if (type != Type::f32 && type != Type::f64) return false;
  op.take_type();
  if (!op.take("approx") && !(op.is({"div"}) && op.take("full"))) d.fail("unknown form of " + std::string(in.opcode));
  const bool ftz = op.take("ftz");
  const bool divides = op.is({"div"});
  Handler run = nullptr;
  if (type == Type::f32) {
    run = !divides ? single(op, ftz)
          : ftz    ? map_lanes<Modified<Divide, true, false>, float, float>
                   : map_lanes<Modified<Divide, false, false>, float, float>;
  } else if (type == Type::f64 && op.is({"rcp"}) && ftz) {
    run = map_active<UpperHalf<reciprocal>, double>;
  } else if (type == Type::f64 && op.is({"rsqrt"})) {
    run = map_active<UpperHalf<reciprocal_root>, double>;
  }
  if (run == nullptr || in.operands.size() != (divides ? 3u : 2u)) d.fail("unknown form of " + std::string(in.opcode));
  const uint32_t a = d.source(in.operands[1], type), b = divides ? d.source(in.operands[2], type) : 0;
  d.emit(run, {d.result(in.operands[0], type), a, b});
  return true;
}

}  // namespace simgpu
