// ops_move: mov, cvta, selp, isspacep: values from one register to another.
#include "tests/simgpu/block.h"
#include "tests/simgpu/decoder.h"
#include "tests/simgpu/lanes.h"
#include "tests/simgpu/select.h"
#include "tests/simgpu/window.h"

namespace simgpu {
namespace {

struct Copy {
  template <class T>
  static T run(T a) {
    return a;
  }
};
template <class To>
struct Convert {
  template <class From>
  static To run(From a) {
    return static_cast<To>(a);
  }
};
struct Sum {
  static uint64_t run(uint64_t a, uint64_t b) { return a + b; }
};

// r[0] = the predicate r[3] ? r[1] : r[2]
template <class T>
void run_select(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint32_t choice = warp.predicate(in.r[3]);
  auto* result = warp.slots<T>(in.r[0]);
  const auto *a = warp.slots<T>(in.r[1]), *b = warp.slots<T>(in.r[2]);
  for (int lane = 0; lane < kLanes; ++lane) {
    const T value = (choice >> lane & 1) != 0 ? a[lane] : b[lane];
    result[lane] = (mask >> lane & 1) != 0 ? value : result[lane];
  }
}

void run_copy_predicate(Warp& warp, const Instruction& in, uint32_t mask) {
  set_predicate(warp.predicate(in.r[0]), warp.predicate(in.r[1]), mask);
}

// Two or four parts, the lowest first, into one value and back.
template <class Whole, class Part>
void run_pack(Warp& warp, const Instruction& in, uint32_t mask) {
  for_active(mask, [&](int lane) {
    Whole whole = 0;
    for (size_t i = 0; i < sizeof(Whole) / sizeof(Part); ++i)
      whole |= static_cast<Whole>(from_slot<Part>(warp.slots<Slot<Part>>(in.r[i + 1])[lane])) << (8 * sizeof(Part) * i);
    warp.slots<Slot<Whole>>(in.r[0])[lane] = whole;
  });
}
template <class Whole, class Part>
void run_unpack(Warp& warp, const Instruction& in, uint32_t mask) {
  for_active(mask, [&](int lane) {
    const Whole whole = warp.slots<Slot<Whole>>(in.r[kAddress])[lane];
    for (size_t i = 0; i < sizeof(Whole) / sizeof(Part); ++i)
      warp.slots<Slot<Part>>(in.r[i])[lane] = static_cast<Part>(whole >> (8 * sizeof(Part) * i));
  });
}

// The clock: instructions, which at least only grow.
template <class T>
void run_clock(Warp& warp, const Instruction& in, uint32_t mask) {
  const auto now = static_cast<T>(warp.block().tick());
  for_active(mask, [&](int lane) { warp.slots<T>(in.r[0])[lane] = now; });
}

void run_in_window(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint64_t* address = warp.slots<uint64_t>(in.r[1]);
  const auto is_in = [&](uint64_t window) {
    return mask_of([&](int lane) { return in_window(address[lane], window); });
  };
  const uint32_t global = ~(is_in(kSharedWindow) | is_in(kLocalWindow) | is_in(kParamWindow));
  set_predicate(warp.predicate(in.r[0]), in.value == 0 ? global : is_in(static_cast<uint64_t>(in.value)), mask);
}

bool is_clock(const ptx::Operand& operand) {
  return operand.name == "%clock" || operand.name == "%clock64" || operand.name == "%globaltimer";
}

void decode_lists(Decoder& d, const ptx::Instruction& in, Type type) {
  const bool packs = in.operands[1].kind == ptx::Operand::Kind::list;
  const auto& parts = in.operands[packs ? 1 : 0].items;
  const bool halves = parts.size() == 2, wide = size_of(type) == 8;
  if ((size_of(type) != 4 && !wide) || !(halves || (wide && parts.size() == 4)))
    d.fail("a pack or unpack of unknown shape");
  const Type part = wide && halves ? Type::b32 : Type::b16;
  uint32_t r[4] = {};
  for (size_t i = 0; i < parts.size(); ++i) r[i] = packs ? d.source(parts[i], part) : d.result(parts[i], part);
  if (packs) {
    d.emit(!wide    ? run_pack<uint32_t, uint16_t>
           : halves ? run_pack<uint64_t, uint32_t>
                    : run_pack<uint64_t, uint16_t>,
           {d.result(in.operands[0], type), r[0], r[1], r[2], r[3]});
  } else {
    const uint32_t whole = d.source(in.operands[1], type);
    d.emit(!wide    ? run_unpack<uint32_t, uint16_t>
           : halves ? run_unpack<uint64_t, uint32_t>
                    : run_unpack<uint64_t, uint16_t>,
           {r[0], r[1], r[2], r[3], whole});
  }
}

void decode_mov(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const Type type = op.take_type();
  const auto& o = in.operands;
  if (type == Type::none || o.size() != 2) d.fail("a mov without a type or with other than two operands");
  if (type == Type::pred) {
    const uint32_t source = d.predicate_source(o[1]);
    d.emit(run_copy_predicate, {d.predicate_result(o[0].name), source});
  } else if (o[0].kind == ptx::Operand::Kind::list || o[1].kind == ptx::Operand::Kind::list) {
    decode_lists(d, in, type);
  } else if (is_clock(o[1])) {
    d.emit(size_of(type) == 8 ? run_clock<uint64_t> : run_clock<uint32_t>, {d.result(o[0], type)});
  } else {
    const uint32_t source = d.source(o[1], type);
    d.emit(size_of(type) == 8 ? map_lanes<Copy, uint64_t> : map_lanes<Copy, uint32_t>, {d.result(o[0], type), source});
  }
}

uint64_t window_of(Decoder& d, Opcode& op) {
  const std::string_view space = op.take_one({"global", "shared", "local", "const", "param"});
  if (space.empty()) d.fail("an address space was expected");
  op.take("cta");
  if (space == "shared") return kSharedWindow;
  if (space == "local") return kLocalWindow;
  return 0;  // addresses of global, constant and parameter memory are generic already
}

}  // namespace

void run_widen_signed(Warp& warp, const Instruction& in, uint32_t mask) {
  map_lanes<Convert<int64_t>, int32_t>(warp, in, mask);
}
void run_widen_unsigned(Warp& warp, const Instruction& in, uint32_t mask) {
  map_lanes<Convert<uint64_t>, uint32_t>(warp, in, mask);
}
void run_narrow(Warp& warp, const Instruction& in, uint32_t mask) {
  map_lanes<Convert<uint32_t>, uint64_t>(warp, in, mask);
}
void run_select_32(Warp& warp, const Instruction& in, uint32_t mask) { run_select<uint32_t>(warp, in, mask); }
void run_set_predicate(Warp& warp, const Instruction& in, uint32_t mask) { warp.predicate(in.r[0]) |= mask; }
void run_clear_predicate(Warp& warp, const Instruction& in, uint32_t mask) { warp.predicate(in.r[0]) &= ~mask; }
void run_not_predicate(Warp& warp, const Instruction& in, uint32_t mask) {
  set_predicate(warp.predicate(in.r[0]), ~warp.predicate(in.r[1]), mask);
}

bool decode_move(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const auto& o = in.operands;
  if (op.is({"mov"})) {
    decode_mov(d, op, in);
  } else if (op.is({"selp"})) {
    const Type type = op.take_type();
    const uint32_t a = d.source(o.at(1), type), b = d.source(o.at(2), type), p = d.predicate_source(o.at(3));
    d.emit(size_of(type) == 8 ? run_select<uint64_t> : run_select<uint32_t>, {d.result(o[0], type), a, b, p});
  } else if (op.is({"cvta"})) {
    const bool back = op.take("to");
    const uint64_t window = window_of(d, op);
    if (op.take_type() != Type::u64) d.fail("cvta of other than u64");
    const uint32_t a = d.source(o.at(1), Type::u64);
    if (window == 0) {
      d.emit(map_lanes<Copy, uint64_t>, {d.result(o[0], Type::u64), a});
    } else {
      d.emit(map_lanes<Sum, uint64_t, uint64_t>,
             {d.result(o[0], Type::u64), a, d.constant(back ? 0 - window : window, Type::u64)});
    }
  } else if (op.is({"isspacep"})) {
    const bool param = op.take("param");
    const uint64_t window = param ? kParamWindow : window_of(d, op);
    const uint32_t a = d.source(o.at(1), Type::u64);
    d.emit(run_in_window, {d.predicate_result(o[0].name), a}).value = static_cast<int64_t>(window);
  } else {
    return false;
  }
  return true;
}

}  // namespace simgpu
