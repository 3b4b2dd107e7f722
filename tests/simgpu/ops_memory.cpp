// ops_memory: loads, stores, copies to shared memory, fences and prefetches.
#include <cstring>

#include "tests/simgpu/access.h"
#include "tests/simgpu/block.h"
#include "tests/simgpu/decoder.h"
#include "tests/simgpu/lanes.h"

namespace simgpu {
namespace {

template <class T, int kCount>
void run_load(Warp& warp, const Instruction& in, uint32_t mask) {
  Reach reach;
  resolve(warp, in, mask, sizeof(T) * kCount, Access::read, reach);
  for (int i = 0; i < kCount; ++i) {
    auto* result = warp.slots<Slot<T>>(in.r[i]);
    const auto load = [&](int lane) {
      T value;
      std::memcpy(&value, reach.lane[lane] + i * sizeof(T), sizeof(T));
      result[lane] = to_slot<T>(value);
    };
    if (mask == kAllLanes) {
      for (int lane = 0; lane < kLanes; ++lane) load(lane);
    } else {
      for_active(mask, load);
    }
  }
}

template <class T, int kCount>
void run_store(Warp& warp, const Instruction& in, uint32_t mask) {
  Reach reach;
  resolve(warp, in, mask, sizeof(T) * kCount, Access::write, reach);
  const auto store = [&](int lane) {
    T values[kCount];
    for (int i = 0; i < kCount; ++i) values[i] = from_slot<T>(warp.slots<Slot<T>>(in.r[i])[lane]);
    if (RaceDetector* race = warp.block().race(); race != nullptr && (reach.shared >> lane & 1) != 0) {
      const auto offset = static_cast<size_t>(reach.lane[lane] - warp.block().shared().data());
      race->write(warp, in, lane, offset, sizeof(values), strength_of(in), reinterpret_cast<const std::byte*>(values));
    }
    std::memcpy(reach.lane[lane], values, sizeof(values));
  };
  for_active(mask, store);
}

// r[3]: the address in shared memory, 32 bits; value: its offset. The address in global memory is kAddress without one.
template <int kBytes>
void run_copy(Warp& warp, const Instruction& in, uint32_t mask) {
  Instruction from = in, to = in;
  from.modifier = static_cast<uint8_t>(StateSpace::global);
  from.value = 0;
  to.modifier = static_cast<uint8_t>(StateSpace::shared);
  to.r[kAddress] = in.r[3];
  to.narrow_address = true;
  Reach source, target;
  uint32_t reading = 0;  // lanes whose source size is not zero
  const uint32_t* size = warp.slots<uint32_t>(in.r[2]);
  for_active(mask, [&](int lane) {
    if (size[lane] > kBytes) warp.fail(FaultKind::illegal_address, "cp.async of more bytes than it copies", in, lane);
    if (size[lane] > 0) reading |= 1u << lane;
  });
  if (reading != 0) resolve(warp, from, reading, kBytes, Access::read, source);
  resolve(warp, to, mask, kBytes, Access::write, target);
  for_active(mask, [&](int lane) {
    std::byte bytes[kBytes] = {};
    if (size[lane] > 0) std::memcpy(bytes, source.lane[lane], size[lane]);
    if (RaceDetector* race = warp.block().race()) {
      race->write(warp, in, lane, static_cast<size_t>(target.lane[lane] - warp.block().shared().data()), kBytes,
                  Strength::weak, bytes);
    }
    std::memcpy(target.lane[lane], bytes, kBytes);
  });
}

void run_nothing(Warp&, const Instruction&, uint32_t) {}

template <bool kLoads, int kCount>
Handler access_handler(Type type) {
  const auto of = []<class T>() -> Handler { return kLoads ? run_load<T, kCount> : run_store<T, kCount>; };
  switch (type) {
    case Type::b8:
    case Type::u8:
      return of.template operator()<uint8_t>();
    case Type::s8:
      return of.template operator()<int8_t>();
    case Type::s16:
      return of.template operator()<int16_t>();
    default:
      break;
  }
  switch (size_of(type)) {
    case 2:
      return of.template operator()<uint16_t>();
    case 4:
      return of.template operator()<uint32_t>();
    case 8:
      return of.template operator()<uint64_t>();
    default:
      return nullptr;
  }
}

struct Where {
  StateSpace space = StateSpace::generic;
  bool strong = false;
};

// Space, cache hints (which change nothing here) and strength.
Where take_where(Decoder& d, Opcode& op) {
  Where where;
  const std::string_view space = op.take_one({"global", "shared", "shared::cta", "local", "param", "const"});
  if (space == "global" || space == "const") where.space = StateSpace::global;
  if (space.substr(0, 6) == "shared") where.space = StateSpace::shared;
  if (space == "local") where.space = StateSpace::local;
  if (space == "param") where.space = StateSpace::param;
  op.take_one({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  op.take_one({"nc"});
  op.take_one({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"});
  op.take_one({"L2::64B", "L2::128B", "L2::256B"});
  const std::string_view order = op.take_one({"weak", "volatile", "relaxed", "acquire", "release", "mmio"});
  where.strong = !order.empty() && order != "weak";
  const std::string_view scope = op.take_one({"cta", "cluster", "gpu", "sys"});
  if (!scope.empty() && !where.strong) d.fail("a scope without an order");
  return where;
}

void decode_access(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const bool loads = !op.is({"st"});
  const Type type = op.take_type();
  const int count = op.take("v2") ? 2 : op.take("v4") ? 4 : 1;
  Where where = take_where(d, op);
  const Handler run = loads ? (count == 1   ? access_handler<true, 1>(type)
                               : count == 2 ? access_handler<true, 2>(type)
                                            : access_handler<true, 4>(type))
                            : (count == 1   ? access_handler<false, 1>(type)
                               : count == 2 ? access_handler<false, 2>(type)
                                            : access_handler<false, 4>(type));
  if (run == nullptr || size_of(type) * count > 16 || in.operands.size() != 2)
    d.fail("unknown form of " + std::string(in.opcode));
  const ptx::Operand& value = in.operands[loads ? 0 : 1];
  const ptx::Operand& address = in.operands[loads ? 1 : 0];
  uint32_t r[4] = {};
  if (count == 1) {
    r[0] = loads ? d.result(value, type) : d.source(value, type);
  } else {
    if (value.items.size() != static_cast<size_t>(count)) d.fail("a vector of another length than said");
    for (int i = 0; i < count; ++i) r[i] = loads ? d.result(value.items[i], type) : d.source(value.items[i], type);
  }
  Instruction fields;
  const Symbol* symbol = d.address(address, fields);
  if (where.space == StateSpace::param && symbol != nullptr && symbol->space == ptx::Variable::Space::local)
    where.space = StateSpace::local;
  Instruction& out = d.emit(run, {r[0], r[1], r[2], r[3], fields.r[kAddress]});
  out.value = fields.value;
  out.narrow_address = fields.narrow_address;
  out.modifier = static_cast<uint8_t>(static_cast<uint8_t>(where.space) | (where.strong ? kStrongBit : 0));
}

// cp.async: done at once; a kernel that forgets to wait for it is not caught.
void decode_copy(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  if (!op.take("async")) d.fail("unknown opcode " + std::string(in.opcode));
  if (op.take_one({"commit_group", "wait_group", "wait_all"}) != "") {
    d.emit(run_nothing, {});
    return;
  }
  op.take_one({"ca", "cg"});
  op.take_one({"L2::64B", "L2::128B", "L2::256B"});
  if (op.take_one({"shared", "shared::cta"}).empty() || !op.take("global"))
    d.fail("unknown form of " + std::string(in.opcode));
  const auto& o = in.operands;
  Instruction to, from;
  d.address(o.at(0), to);
  d.address(o.at(1), from);
  const int64_t bytes = o.at(2).value;
  const uint32_t size = o.size() > 3 ? d.source(o[3], Type::u32) : d.constant(static_cast<uint64_t>(bytes), Type::u32);
  if (!to.narrow_address || from.narrow_address || from.value != 0) d.fail("unknown form of " + std::string(in.opcode));
  const Handler run = bytes == 4 ? run_copy<4> : bytes == 8 ? run_copy<8> : bytes == 16 ? run_copy<16> : nullptr;
  if (run == nullptr) d.fail("cp.async of other than 4, 8 or 16 bytes");
  d.emit(run, {0, 0, size, to.r[kAddress], from.r[kAddress]}).value = to.value;
}

}  // namespace

bool decode_memory(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  if (op.is({"ld", "ldu", "st"})) {
    decode_access(d, op, in);
  } else if (op.is({"cp"})) {
    decode_copy(d, op, in);
  } else if (op.is({"membar", "fence"})) {
    // Memory here is sequentially consistent.
    op.take_one({"sc", "acq_rel", "acquire", "release"});
    op.take_one({"cta", "gl", "sys", "gpu", "cluster"});
    d.emit(run_nothing, {});
  } else if (op.is({"prefetch", "prefetchu"})) {
    op.take_one({"global", "local"});
    if (op.take_one({"L1", "L2", "L2::evict_last", "L2::evict_normal"}).empty())
      d.fail("unknown form of " + std::string(in.opcode));
    d.emit(run_nothing, {});
  } else {
    return false;
  }
  return true;
}

}  // namespace simgpu
