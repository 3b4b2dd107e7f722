// warp: the inner loop, divergence and the waiting of *.sync.
#include "tests/simgpu/warp.h"

#include <algorithm>
#include <bit>

#include "tests/simgpu/block.h"
#include "tests/simgpu/lanes.h"

namespace simgpu {

Warp::Warp(Block& block, int index, std::byte* registers, uint32_t* predicates)
    : block_(block), index_(index), registers_(registers), predicates_(predicates) {
  groups_.reserve(2 * kLanes);
}

void Warp::restart(uint32_t lanes) {
  live_ = lanes;
  groups_.clear();
  groups_.push_back({lanes, 0});
}

void Warp::fail(FaultKind kind, const std::string& sentence, const Instruction& in, int lane) const {
  throw Fault(kind, sentence, block_.place(in, thread(lane)));
}

bool Warp::can_run() const {
  return std::any_of(groups_.begin(), groups_.end(), [](const Group& g) { return g.state == Group::State::ready; });
}

// Groups that are ready at the same instruction become one.
void Warp::join() {
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (size_t j = groups_.size(); --j > i;) {
      if (groups_[i].pc != groups_[j].pc || groups_[i].state != Group::State::ready ||
          groups_[j].state != Group::State::ready)
        continue;
      groups_[i].mask |= groups_[j].mask;
      groups_[i].yielded = groups_[i].yielded && groups_[j].yielded;
      groups_.erase(groups_.begin() + static_cast<long>(j));
    }
  }
}

// The ready group with the lowest pc that has not used its turn.
size_t Warp::pick() const {
  size_t best = groups_.size();
  for (size_t i = 0; i < groups_.size(); ++i) {
    const Group& g = groups_[i];
    if (g.state == Group::State::ready && !g.yielded && (best == groups_.size() || g.pc < groups_[best].pc)) best = i;
  }
  return best;
}

int64_t Warp::run(int64_t turn) {
  while (turn > 0 && can_run()) {
    if (groups_.size() > 1) join();
    size_t which = pick();
    if (which == groups_.size()) {  // all have used their turn: a new round
      for (Group& g : groups_) g.yielded = false;
      which = pick();
    }
    if (groups_.size() == 1) {
      turn = run_group(which, turn);
    } else {
      const int64_t part = std::min(turn, block_.group_turn());
      const uint32_t lanes = groups_[which].mask;
      const int64_t left = run_group(which, part);
      turn -= part - left;
      if (left == 0) {
        for (Group& g : groups_) g.yielded = g.yielded || (g.mask & lanes) != 0;
      }
    }
  }
  return turn;
}

void Warp::split(uint32_t mask, uint32_t pc, Group::State state) {
  if (mask == 0) return;
  Group group;
  group.mask = mask;
  group.pc = pc;
  group.state = state;
  groups_.push_back(group);
}

void Warp::exit_lanes(uint32_t mask) {
  live_ &= ~mask;
  // Who waited for them looks again.
  for (Group& g : groups_) {
    if (g.state == Group::State::warp_sync || g.state == Group::State::warp_barrier) g.state = Group::State::ready;
  }
}

// Runs one group until it has to wait, meets another one or has no turn left. Returns what is left of the turn.
int64_t Warp::run_group(size_t which, int64_t turn) {
  const Instruction* const code = block_.program().code.data();
  uint32_t pc = groups_[which].pc, mask = groups_[which].mask;
  uint32_t stop = UINT32_MAX;
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (i != which && groups_[i].state == Group::State::ready && !groups_[i].yielded)
      stop = std::min(stop, groups_[i].pc);
  }
  for (; turn > 0 && pc < stop; --turn) {
    const Instruction& in = code[pc];
    uint32_t active = mask;
    if (in.guard >= 0) active &= in.guard_negated ? ~predicates_[in.guard] : predicates_[in.guard];
    if (in.flow == Flow::plain) {
      if (active != 0) in.run(*this, in, active);
      ++pc;
      continue;
    }
    const uint32_t others = mask & ~active;
    if (in.flow == Flow::branch) {
      if (others == 0) {
        pc = in.target;
      } else if (active == 0) {
        ++pc;
      } else {  // the side with the lower pc runs first
        const bool forward = in.target > pc;
        split(forward ? active : others, forward ? in.target : pc + 1, Group::State::ready);
        stop = std::min(stop, groups_.back().pc);
        mask = forward ? others : active;
        pc = forward ? pc + 1 : in.target;
      }
      continue;
    }
    if (active == 0) {
      ++pc;
      continue;
    }
    if (in.flow == Flow::warp_sync && others == 0 && sync_at_once(in, active)) {
      in.run(*this, in, active);
      ++pc;
      continue;
    }
    // Everything else ends this group: the lanes whose guard does not hold become another group.
    groups_.erase(groups_.begin() + static_cast<long>(which));
    split(others, pc + 1, Group::State::ready);
    switch (in.flow) {
      case Flow::exit:
        exit_lanes(active);
        break;
      case Flow::barrier:
        block_.arrive(*this, in, active);
        break;
      case Flow::warp_sync:
        split(active, pc, Group::State::warp_sync);
        settle(pc);
        break;
      case Flow::warp_barrier:
        split(active, pc, Group::State::warp_barrier);
        settle(pc);
        break;
      case Flow::plain:
      case Flow::branch:
        break;
    }
    return turn - 1;
  }
  groups_[which].pc = pc;
  groups_[which].mask = mask;
  return turn;
}

// The common case of a *.sync: all lanes name the same lanes, and these are just the ones that are here.
bool Warp::sync_at_once(const Instruction& in, uint32_t mask) {
  const uint32_t* members = slots<uint32_t>(in.r[kMembers]);
  const uint32_t first = members[std::countr_zero(mask)];
  if ((first & live_) != mask) return false;
  return (mask_of([&](int lane) { return members[lane] == first; }) & mask) == mask;
}

// Resumes the lanes for which all others have arrived: at this instruction, or at any bar.warp.sync.
void Warp::settle(uint32_t pc) {
  const Instruction& in = block_.program().code[pc];
  const auto state = in.flow == Flow::warp_sync ? Group::State::warp_sync : Group::State::warp_barrier;
  const auto waits = [&](const Group& g) {
    return g.state == state && (state == Group::State::warp_barrier || g.pc == pc);
  };
  uint32_t here = 0;
  uint32_t members[kLanes] = {};
  for (const Group& g : groups_) {
    if (!waits(g)) continue;
    here |= g.mask;
    for_active(g.mask,
               [&](int lane) { members[lane] = slots<uint32_t>(block_.program().code[g.pc].r[kMembers])[lane]; });
  }
  uint32_t ready = 0;
  for_active(here, [&](int lane) {
    if ((members[lane] >> lane & 1) == 0)
      fail(FaultKind::inactive_lane, "a lane executes a .sync whose member mask does not name it", in, lane);
    const uint32_t needed = members[lane] & live_;
    if ((needed & ~here) != 0) return;
    for_active(needed, [&](int other) {
      if (members[other] != members[lane])
        fail(FaultKind::inactive_lane, "lanes that wait for each other at a .sync give different member masks", in,
             lane);
    });
    ready |= 1u << lane;
  });
  if (ready == 0) return;
  if (state == Group::State::warp_sync) {
    in.run(*this, in, ready);
  } else {
    for (uint32_t rest = ready; rest != 0;) {  // each set of lanes that name each other is a barrier of its own
      const uint32_t team = members[std::countr_zero(rest)] & ready;
      in.run(*this, in, team);
      rest &= ~team;
    }
  }
  for (size_t i = groups_.size(); i-- > 0;) {
    Group& g = groups_[i];
    if (!waits(g) || (g.mask & ready) == 0) continue;
    const uint32_t go = g.mask & ready, from = g.pc;
    g.mask &= ~ready;
    if (g.mask == 0) groups_.erase(groups_.begin() + static_cast<long>(i));
    split(go, from + 1, Group::State::ready);
  }
}

}  // namespace simgpu
