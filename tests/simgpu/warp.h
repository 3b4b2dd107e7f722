// warp: 32 threads: their registers, and where each of them is in the program.
//
// A warp is a list of groups (pc, lanes). The group with the lowest pc runs, until it reaches another group's pc (they
// join), waits, or has used its turn (then another one runs, so that lanes may wait for each other). That gives
// reconvergence and independent thread scheduling at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/simgpu/fault.h"
#include "tests/simgpu/program.h"

namespace simgpu {

class Block;

struct Group {
  enum class State : uint8_t { ready, warp_sync, warp_barrier, barrier };
  uint32_t mask = 0, pc = 0;
  State state = State::ready;
  bool yielded = false;  // has used its turn; the others go first
};

class Warp {
 public:
  Warp(Block& block, int index, std::byte* registers, uint32_t* predicates);

  // Back to the program's start, with these lanes.
  void restart(uint32_t lanes);
  // Runs until `turn` instructions are done or no group can run; returns the instructions left.
  int64_t run(int64_t turn);
  bool can_run() const;
  bool finished() const { return groups_.empty(); }

  // For handlers.
  template <class S>
  S* slots(uint32_t offset) {
    return reinterpret_cast<S*>(registers_ + offset);
  }
  uint32_t& predicate(uint32_t number) { return predicates_[number]; }
  Block& block() { return block_; }
  int index() const { return index_; }
  uint32_t live() const { return live_; }
  int thread(int lane) const { return index_ * kLanes + lane; }
  [[noreturn]] void fail(FaultKind kind, const std::string& sentence, const Instruction& in, int lane) const;

  // For the block's barriers.
  std::vector<Group>& groups() { return groups_; }
  void split(uint32_t mask, uint32_t pc, Group::State state);

 private:
  int64_t run_group(size_t which, int64_t turn);
  void exit_lanes(uint32_t mask);
  bool sync_at_once(const Instruction& in, uint32_t mask);
  void settle(uint32_t pc);
  void join();
  size_t pick() const;

  Block& block_;
  int index_;
  std::byte* registers_;
  uint32_t* predicates_;
  uint32_t live_ = 0;
  std::vector<Group> groups_;
};

}  // namespace simgpu
