// ops_control: branches, calls, exits and barriers. The scheduler acts on their Flow.
#include "tests/simgpu/block.h"
#include "tests/simgpu/decoder.h"
#include "tests/simgpu/lanes.h"

namespace simgpu {
namespace {

void run_trap(Warp& warp, const Instruction& in, uint32_t mask) {
  warp.fail(FaultKind::trap, "the kernel stopped itself", in, std::countr_zero(mask));
}

void run_nothing(Warp&, const Instruction&, uint32_t) {}

void run_warp_barrier(Warp& warp, const Instruction&, uint32_t mask) {
  if (RaceDetector* race = warp.block().race()) race->warp_barrier(warp, mask);
}

// bar.sync a{, b}; bar.arrive a, b; bar.red.op p, a{, b}, {!}c
void decode_barrier(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const auto& o = in.operands;
  op.take("cta");
  op.take("aligned");
  if (op.take("warp")) {
    if (!op.take("sync") || o.size() != 1) d.fail("unknown form of " + std::string(in.opcode));
    const uint32_t members = d.source(o[0], Type::b32);
    Instruction& out = d.emit(run_warp_barrier, {});
    out.flow = Flow::warp_barrier;
    out.r[kMembers] = members;
    return;
  }
  BarrierKind kind = BarrierKind::sync;
  Type result_type = Type::none;
  if (op.take("arrive")) {
    kind = BarrierKind::arrive;
  } else if (op.take("red")) {
    result_type = op.take_type();
    kind = op.take("popc") ? BarrierKind::red_popc : op.take("and") ? BarrierKind::red_and : BarrierKind::red_or;
    if (kind == BarrierKind::red_or && !op.take("or")) d.fail("unknown form of " + std::string(in.opcode));
    if (result_type != (kind == BarrierKind::red_popc ? Type::u32 : Type::pred))
      d.fail("unknown form of " + std::string(in.opcode));
  } else if (!op.take("sync")) {
    d.fail("unknown form of " + std::string(in.opcode));
  }
  const bool reduces = kind >= BarrierKind::red_and;
  const size_t first = reduces ? 1 : 0;
  const bool counted = o.size() == first + 2 + (reduces ? 1 : 0);
  const uint32_t id = d.source(o.at(first), Type::u32), count = counted ? d.source(o.at(first + 1), Type::u32) : 0;
  const uint32_t vote = reduces ? d.predicate_source(o.back()) : 0;
  const uint32_t result = !reduces                        ? 0
                          : kind == BarrierKind::red_popc ? d.result(o[0], Type::u32)
                                                          : d.predicate_result(o[0].name);
  Instruction& out = d.emit(nullptr, {result, id, count, vote});
  out.flow = Flow::barrier;
  out.modifier = static_cast<uint8_t>(kind);
  out.value = counted ? 1 : 0;
}

}  // namespace

bool decode_control(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  if (op.is({"bra"})) {
    op.take("uni");
    d.branch(in.operands.at(0).name);
  } else if (op.is({"call"})) {
    op.take("uni");
    d.call(in);
  } else if (op.is({"ret"})) {
    op.take("uni");
    d.leave();
  } else if (op.is({"exit"})) {
    d.emit(nullptr, {}).flow = Flow::exit;
  } else if (op.is({"trap"})) {
    d.emit(run_trap, {});
  } else if (op.is({"bar", "barrier"})) {
    decode_barrier(d, op, in);
  } else if (op.is({"nanosleep"})) {
    if (op.take_type() != Type::u32) d.fail("unknown form of " + std::string(in.opcode));
    d.emit(run_nothing, {});
  } else if (op.is({"pmevent", "griddepcontrol"})) {
    op.take_one({"launch_dependents", "wait"});  // one kernel runs at a time
    d.emit(run_nothing, {});
  } else {
    return false;
  }
  return true;
}

}  // namespace simgpu
