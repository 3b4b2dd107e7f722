// ops_warp: operations between the lanes of a warp: shuffles, votes, matches, reductions.
//
// The scheduler calls these handlers when all lanes that a lane's member mask names are there (Flow::warp_sync).
#include <algorithm>
#include <bit>

#include "tests/simgpu/block.h"
#include "tests/simgpu/decoder.h"
#include "tests/simgpu/lanes.h"

namespace simgpu {
namespace {

// f(members) for each set of lanes that name each other.
template <class F>
void for_teams(Warp& warp, const Instruction& in, uint32_t mask, const F& f) {
  const uint32_t* members = warp.slots<uint32_t>(in.r[kMembers]);
  while (mask != 0) {
    const uint32_t team = members[std::countr_zero(mask)] & mask;
    f(team);
    mask &= ~team;
  }
}

enum class Shuffle : uint8_t { up, down, bfly, idx };
constexpr std::string_view kShuffles[] = {"up", "down", "bfly", "idx"};

// r: result, source, lane or distance, clamp and segment mask, the predicate "source in range". value: there is one.
template <Shuffle kMode>
void run_shuffle(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint32_t* members = warp.slots<uint32_t>(in.r[kMembers]);
  uint32_t source[kLanes];
  std::copy_n(warp.slots<uint32_t>(in.r[1]), kLanes, source);
  const uint32_t *b = warp.slots<uint32_t>(in.r[2]), *c = warp.slots<uint32_t>(in.r[3]);
  uint32_t* result = warp.slots<uint32_t>(in.r[0]);
  uint32_t in_range = 0;
  for_active(mask, [&](int lane) {
    const int distance = static_cast<int>(b[lane] & 31), clamp = static_cast<int>(c[lane] & 31),
              segment = static_cast<int>(c[lane] >> 8 & 31);
    const int highest = (lane & segment) | (clamp & ~segment), lowest = lane & segment;
    int from;
    bool valid;
    if constexpr (kMode == Shuffle::up) {
      from = lane - distance;
      valid = from >= highest;  // for .up the clamp is the lowest lane
    } else if constexpr (kMode == Shuffle::down) {
      from = lane + distance;
      valid = from <= highest;
    } else if constexpr (kMode == Shuffle::bfly) {
      from = lane ^ distance;
      valid = from <= highest;
    } else {
      from = lowest | (distance & ~segment);
      valid = from <= highest;
    }
    if (!valid) from = lane;
    if ((members[lane] & mask & 1u << from) == 0) {
      warp.fail(FaultKind::inactive_lane,
                "a shuffle reads lane " + std::to_string(from) + ", which does not take part in it", in, lane);
    }
    result[lane] = source[from];
    if (valid) in_range |= 1u << lane;
  });
  if (in.value != 0) set_predicate(warp.predicate(in.r[4]), in_range, mask);
}

enum class Vote : uint8_t { all, any, uni, ballot };
constexpr std::string_view kVotes[] = {"all", "any", "uni", "ballot"};

void run_vote(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint32_t votes = warp.predicate(in.r[1]);
  for_teams(warp, in, mask, [&](uint32_t team) {
    const uint32_t yes = votes & team;
    const auto kind = static_cast<Vote>(in.modifier);
    if (kind == Vote::ballot) {
      for_active(team, [&](int lane) { warp.slots<uint32_t>(in.r[0])[lane] = yes; });
      return;
    }
    const bool holds = kind == Vote::all ? yes == team : kind == Vote::any ? yes != 0 : yes == team || yes == 0;
    set_predicate(warp.predicate(in.r[0]), holds ? kAllLanes : 0, team);
  });
}

template <class T>
void run_match_any(Warp& warp, const Instruction& in, uint32_t mask) {
  const T* value = warp.slots<T>(in.r[1]);
  uint32_t* result = warp.slots<uint32_t>(in.r[0]);
  for_teams(warp, in, mask, [&](uint32_t team) {
    uint32_t same[kLanes];
    for_active(team,
               [&](int lane) { same[lane] = team & mask_of([&](int other) { return value[other] == value[lane]; }); });
    for_active(team, [&](int lane) { result[lane] = same[lane]; });
  });
}

template <class T>
void run_match_all(Warp& warp, const Instruction& in, uint32_t mask) {
  const T* value = warp.slots<T>(in.r[1]);
  uint32_t* result = warp.slots<uint32_t>(in.r[0]);
  for_teams(warp, in, mask, [&](uint32_t team) {
    const T first = value[std::countr_zero(team)];
    const bool all = (team & ~mask_of([&](int lane) { return value[lane] == first; })) == 0;
    for_active(team, [&](int lane) { result[lane] = all ? team : 0; });
    set_predicate(warp.predicate(in.r[2]), all ? kAllLanes : 0, team);
  });
}

template <class Op, class T>
void run_redux(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint32_t* source = warp.slots<uint32_t>(in.r[1]);
  uint32_t* result = warp.slots<uint32_t>(in.r[0]);
  for_teams(warp, in, mask, [&](uint32_t team) {
    T total = from_slot<T>(source[std::countr_zero(team)]);
    for_active(team & (team - 1), [&](int lane) { total = Op::run(total, from_slot<T>(source[lane])); });
    for_active(team, [&](int lane) { result[lane] = to_slot<T>(total); });
  });
}
struct Add {
  template <class T>
  static T run(T a, T b) {
    return static_cast<T>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  }
};
struct Min {
  template <class T>
  static T run(T a, T b) {
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  static T run(T a, T b) {
    return a > b ? a : b;
  }
};
struct And {
  static uint32_t run(uint32_t a, uint32_t b) { return a & b; }
};
struct Or {
  static uint32_t run(uint32_t a, uint32_t b) { return a | b; }
};
struct Xor {
  static uint32_t run(uint32_t a, uint32_t b) { return a ^ b; }
};

void run_activemask(Warp& warp, const Instruction& in, uint32_t mask) {
  for_active(mask, [&](int lane) { warp.slots<uint32_t>(in.r[0])[lane] = mask; });
}

// The lowest lane of the team.
void run_elect(Warp& warp, const Instruction& in, uint32_t mask) {
  for_teams(warp, in, mask, [&](uint32_t team) {
    const int leader = std::countr_zero(team);
    for_active(team, [&](int lane) { warp.slots<uint32_t>(in.r[0])[lane] = static_cast<uint32_t>(leader); });
    set_predicate(warp.predicate(in.r[1]), 1u << leader, team);
  });
}

Instruction& emit_sync(Decoder& d, Handler run, std::initializer_list<uint32_t> operands, uint32_t members) {
  Instruction& in = d.emit(run, operands);
  in.flow = Flow::warp_sync;
  in.r[kMembers] = members;
  return in;
}

void decode_shuffle(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const auto& o = in.operands;
  constexpr Handler handlers[] = {run_shuffle<Shuffle::up>, run_shuffle<Shuffle::down>, run_shuffle<Shuffle::bfly>,
                                  run_shuffle<Shuffle::idx>};
  Handler run = nullptr;
  for (size_t mode = 0; mode < 4; ++mode) {
    if (op.take(kShuffles[mode])) run = handlers[mode];
  }
  if (run == nullptr || op.take_type() != Type::b32 || o.size() != 5)
    d.fail("unknown form of " + std::string(in.opcode));
  const uint32_t a = d.source(o[1], Type::b32), b = d.source(o[2], Type::b32), c = d.source(o[3], Type::b32),
                 members = d.source(o[4], Type::b32);
  ptx::Operand target = o[0];
  target.second = {};
  const uint32_t result = d.result(target, Type::b32);
  const bool predicate = !o[0].second.empty();
  emit_sync(d, run, {result, a, b, c, predicate ? d.predicate_result(o[0].second) : 0}, members).value =
      predicate ? 1 : 0;
}

void decode_vote(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const auto& o = in.operands;
  uint8_t kind = 0;
  while (kind < 4 && !op.take(kVotes[kind])) ++kind;
  const bool ballot = kind == static_cast<uint8_t>(Vote::ballot);
  if (kind == 4 || op.take_type() != (ballot ? Type::b32 : Type::pred) || o.size() != 3)
    d.fail("unknown form of " + std::string(in.opcode));
  const uint32_t a = d.predicate_source(o[1]), members = d.source(o[2], Type::b32);
  emit_sync(d, run_vote, {ballot ? d.result(o[0], Type::b32) : d.predicate_result(o[0].name), a}, members).modifier =
      kind;
}

void decode_match(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const auto& o = in.operands;
  const bool any = op.take("any");
  const Type type = op.take_type();
  if ((!any && !op.take("all")) || !is_bits(type) || size_of(type) < 4 || o.size() != 3)
    d.fail("unknown form of " + std::string(in.opcode));
  const uint32_t a = d.source(o[1], type), members = d.source(o[2], Type::b32);
  ptx::Operand target = o[0];
  target.second = {};
  const uint32_t result = d.result(target, Type::b32);
  const bool wide = type == Type::b64;
  if (any) {
    emit_sync(d, wide ? run_match_any<uint64_t> : run_match_any<uint32_t>, {result, a}, members);
  } else {
    const uint32_t predicate = o[0].second.empty() ? d.temporary_predicate() : d.predicate_result(o[0].second);
    emit_sync(d, wide ? run_match_all<uint64_t> : run_match_all<uint32_t>, {result, a, predicate}, members);
  }
}

void decode_redux(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  const Type type = op.take_type();
  const bool of_signed = type == Type::s32;
  Handler run = nullptr;
  if (type == Type::u32 || of_signed) {
    if (op.take("add")) run = run_redux<Add, uint32_t>;
    if (op.take("min")) run = of_signed ? run_redux<Min, int32_t> : run_redux<Min, uint32_t>;
    if (op.take("max")) run = of_signed ? run_redux<Max, int32_t> : run_redux<Max, uint32_t>;
  } else if (type == Type::b32) {
    if (op.take("and")) run = run_redux<And, uint32_t>;
    if (op.take("or")) run = run_redux<Or, uint32_t>;
    if (op.take("xor")) run = run_redux<Xor, uint32_t>;
  }
  if (run == nullptr || in.operands.size() != 3) d.fail("unknown form of " + std::string(in.opcode));
  const uint32_t a = d.source(in.operands[1], type), members = d.source(in.operands[2], Type::b32);
  emit_sync(d, run, {d.result(in.operands[0], type), a}, members);
}

}  // namespace

bool decode_warp(Decoder& d, Opcode& op, const ptx::Instruction& in) {
  if (op.is({"activemask"})) {
    if (op.take_type() != Type::b32) d.fail("unknown form of " + std::string(in.opcode));
    d.emit(run_activemask, {d.result(in.operands.at(0), Type::b32)});
    return true;
  }
  if (!op.is({"shfl", "vote", "match", "redux", "elect"})) return false;
  if (!op.take("sync")) d.fail("only the .sync form is known: " + std::string(in.opcode));
  if (op.is({"shfl"})) decode_shuffle(d, op, in);
  if (op.is({"vote"})) decode_vote(d, op, in);
  if (op.is({"match"})) decode_match(d, op, in);
  if (op.is({"redux"})) decode_redux(d, op, in);
  if (op.is({"elect"})) {
    const uint32_t members = d.source(in.operands.at(1), Type::b32);
    ptx::Operand target = in.operands[0];
    target.second = {};
    emit_sync(d, run_elect, {d.result(target, Type::b32), d.predicate_result(in.operands[0].second)}, members);
  }
  return true;
}

}  // namespace simgpu
