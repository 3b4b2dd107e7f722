// ops_carry: additions and products that leave or take a carry, for integers of more than 64 bits.
#include "tests/simgpu/decoder.h"
#include "tests/simgpu/lanes.h"

namespace simgpu {
namespace {

// Instruction::modifier
constexpr uint8_t kTakes = 1, kLeaves = 2, kSubtracts = 4, kHigh = 8;

// r[0] = r[1] (* r[2]) + r[3], with the carry in predicate r[4]. A borrow is stored as a carry.
template <class T>
void run_carry(Warp& warp, const Instruction& in, uint32_t mask) {
  using Wide = unsigned __int128;
  uint32_t& carry = warp.predicate(in.r[4]);
  const bool takes = (in.modifier & kTakes) != 0, subtracts = (in.modifier & kSubtracts) != 0;
  const bool product = in.value != 0;
  for_active(mask, [&](int lane) {
    T a = warp.slots<T>(in.r[1])[lane];
    if (product) {
      const Wide whole = static_cast<Wide>(a) * warp.slots<T>(in.r[2])[lane];
      a = static_cast<T>((in.modifier & kHigh) != 0 ? whole >> (8 * sizeof(T)) : whole);
    }
    const T c = warp.slots<T>(in.r[3])[lane];
    const Wide in_bit = takes ? carry >> lane & 1 : 0;
    const Wide sum = subtracts ? static_cast<Wide>(a) - c - in_bit : static_cast<Wide>(a) + c + in_bit;
    warp.slots<T>(in.r[0])[lane] = static_cast<T>(sum);
    if ((in.modifier & kLeaves) != 0)
      set_predicate(carry, (sum >> (8 * sizeof(T)) & 1) != 0 ? kAllLanes : 0, 1u << lane);
  });
}

}  // namespace

bool decode_carry(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const bool takes = op.is({"addc", "subc", "madc"});
  if (!takes && !(op.is({"add", "sub", "mad"}) && op.has("cc"))) return false;
  const Type type = op.take_type();
  const bool leaves = op.take("cc"), product = op.is({"mad", "madc"});
  const bool high = product && op.take("hi");
  if (product && !high && !op.take("lo")) d.fail("a product with carry that is neither .lo nor .hi");
  if (!is_integer(type) || size_of(type) < 4 || (high && is_signed(type)))
    d.fail("unknown type of " + std::string(in.opcode));
  const auto& o = in.operands;
  const uint32_t a = d.source(o.at(1), type), b = product ? d.source(o.at(2), type) : 0,
                 c = d.source(o.at(product ? 3 : 2), type);
  Instruction& out = d.emit(size_of(type) == 8 ? run_carry<uint64_t> : run_carry<uint32_t>,
                            {d.result(o[0], type), a, b, c, d.carry()});
  out.modifier = static_cast<uint8_t>((takes ? kTakes : 0) | (leaves ? kLeaves : 0) |
                                      (op.is({"sub", "subc"}) ? kSubtracts : 0) | (high ? kHigh : 0));
  out.value = product ? 1 : 0;
  return true;
}

}  // namespace simgpu
