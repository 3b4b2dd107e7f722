// ops_products: products of 24 bits, and of bytes (dp4a).
#include "tests/simgpu/decoder.h"
#include "tests/simgpu/lanes.h"

namespace simgpu {
namespace {

// Of the lower 24 bits of each.
template <class T>
int64_t product24(T a, T b) {
  if constexpr (std::is_signed_v<T>) return (int64_t{a} << 40 >> 40) * (int64_t{b} << 40 >> 40);
  return static_cast<int64_t>(uint64_t{a & 0xffffffu} * (b & 0xffffffu));
}
struct Mul24Lo {
  template <class T>
  static T run(T a, T b) {
    return static_cast<T>(product24(a, b));
  }
};
struct Mul24Hi {
  template <class T>
  static T run(T a, T b) {
    return static_cast<T>(product24(a, b) >> 16);
  }
};
struct Mad24Lo {
  template <class T>
  static T run(T a, T b, T c) {
    return static_cast<T>(static_cast<uint32_t>(product24(a, b)) + static_cast<uint32_t>(c));
  }
};
// Four (dp4a) products of bytes, added to c.
template <class A, class B>
struct Dp4a {
  static uint32_t run(uint32_t a, uint32_t b, uint32_t c) {
    for (int i = 0; i < 32; i += 8)
      c += static_cast<uint32_t>(int32_t{static_cast<A>(a >> i)} * int32_t{static_cast<B>(b >> i)});
    return c;
  }
};

template <class Op, int kSources>
Handler of_words(Type type) {
  if (type != Type::s32 && type != Type::u32) return nullptr;
  if constexpr (kSources == 2)
    return type == Type::s32 ? map_lanes<Op, int32_t, int32_t> : map_lanes<Op, uint32_t, uint32_t>;
  else
    return type == Type::s32 ? map_lanes<Op, int32_t, int32_t, int32_t> : map_lanes<Op, uint32_t, uint32_t, uint32_t>;
}

void decode_24(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const Type type = op.take_type();
  const bool adds = op.is({"mad24"});
  Handler run = nullptr;
  if (op.take("lo"))
    run = adds ? of_words<Mad24Lo, 3>(type) : of_words<Mul24Lo, 2>(type);
  else if (!adds && op.take("hi"))
    run = of_words<Mul24Hi, 2>(type);
  if (run == nullptr || in.operands.size() != (adds ? 4u : 3u)) d.fail("unknown form of " + std::string(in.opcode));
  const uint32_t a = d.source(in.operands[1], type), b = d.source(in.operands[2], type),
                 c = adds ? d.source(in.operands[3], type) : 0;
  d.emit(run, {d.result(in.operands[0], type), a, b, c});
}

void decode_dot(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const Type b = op.take_type(), a = op.take_type();
  const bool sa = a == Type::s32, sb = b == Type::s32;
  if ((!sa && a != Type::u32) || (!sb && b != Type::u32)) d.fail("dp4a of other than u32 and s32");
  const Handler run = sa ? (sb ? map_lanes<Dp4a<int8_t, int8_t>, uint32_t, uint32_t, uint32_t>
                               : map_lanes<Dp4a<int8_t, uint8_t>, uint32_t, uint32_t, uint32_t>)
                         : (sb ? map_lanes<Dp4a<uint8_t, int8_t>, uint32_t, uint32_t, uint32_t>
                               : map_lanes<Dp4a<uint8_t, uint8_t>, uint32_t, uint32_t, uint32_t>);
  const uint32_t x = d.source(in.operands.at(1), a), y = d.source(in.operands.at(2), b),
                 z = d.source(in.operands.at(3), a);
  d.emit(run, {d.result(in.operands[0], a), x, y, z});
}

}  // namespace

bool decode_products(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  if (op.is({"mul24", "mad24"}))
    decode_24(d, op, in);
  else if (op.is({"dp4a"}))
    decode_dot(d, op, in);
  else
    return false;
  return true;
}

}  // namespace simgpu
