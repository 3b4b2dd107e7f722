// race: bookkeeping per byte.
#include "tests/simgpu/race.h"

#include <algorithm>
#include <bit>
#include <string>

#include "tests/simgpu/block.h"
#include "tests/simgpu/lanes.h"

namespace simgpu {

RaceDetector::RaceDetector(size_t shared_bytes, int warps) : cells_(shared_bytes), syncs_(warps) {}

void RaceDetector::warp_barrier(Warp& warp, uint32_t mask) {
  WarpSyncs& syncs = syncs_[warp.index()];
  ++syncs.count;
  if (mask == kAllLanes) {
    syncs.last_full = syncs.count;
    return;
  }
  for_active(mask, [&](int a) { for_active(mask, [&](int b) { syncs.last[a * kLanes + b] = syncs.count; }); });
}

bool RaceDetector::ordered(const WarpSyncs& syncs, int lane, int other, uint32_t since) const {
  return lane == other || syncs.last_full > since || syncs.last[lane * kLanes + other] > since;
}

void RaceDetector::report(Warp& warp, const Instruction& in, int lane, size_t offset, const char* verb, int other,
                          const char* other_verb, uint32_t other_pc) const {
  const Program& program = warp.block().program();
  const Instruction& before = program.code[other_pc];
  std::string text = "thread " + std::to_string(warp.thread(lane)) + " " + verb + " byte " + std::to_string(offset) +
                     " of shared memory, which thread " + std::to_string(other) + " " + other_verb +
                     " with no barrier between them (" + quote(program, before.line);
  const std::string source = source_of(program, before);
  if (!source.empty()) text += " at " + source;
  warp.fail(FaultKind::race, text + ")", in, lane);
}

void RaceDetector::check_writer(Warp& warp, const Instruction& in, int lane, const Cell& cell, size_t offset,
                                const char* verb) {
  if (cell.write_epoch != epoch_ || cell.writer == warp.thread(lane)) return;
  const bool same_warp = cell.writer / kLanes == warp.index();
  if (same_warp && ordered(syncs_[warp.index()], lane, cell.writer % kLanes, cell.write_sync)) return;
  report(warp, in, lane, offset, verb, cell.writer, "wrote", cell.write_pc);
}

void RaceDetector::check_readers(Warp& warp, const Instruction& in, int lane, const Cell& cell, size_t offset,
                                 Strength strength) {
  if (cell.read_epoch != epoch_ || (strength == Strength::strong && cell.strong_reads)) return;
  if (cell.read_warp != warp.index())
    report(warp, in, lane, offset, "writes", cell.read_warp * kLanes + std::countr_zero(cell.read_lanes), "read",
           cell.read_pc);
  for_active(cell.read_lanes, [&](int other) {
    if (!ordered(syncs_[warp.index()], lane, other, cell.read_sync))
      report(warp, in, lane, offset, "writes", warp.thread(other), "read", cell.read_pc);
  });
  if (cell.other_warps)
    warp.fail(FaultKind::race,
              "thread " + std::to_string(warp.thread(lane)) + " writes byte " + std::to_string(offset) +
                  " of shared memory, which threads of other warps read with no barrier between them",
              in, lane);
}

void RaceDetector::read(Warp& warp, const Instruction& in, int lane, size_t offset, size_t bytes, Strength strength) {
  const bool strong = strength == Strength::strong;
  const auto pc = static_cast<uint32_t>(&in - warp.block().program().code.data());
  const uint32_t sync = syncs_[warp.index()].count;
  for (size_t i = offset; i < offset + bytes; ++i) {
    Cell& cell = cells_[i];
    if (!(strong && cell.strong_write)) check_writer(warp, in, lane, cell, i, "reads");
    if (cell.read_epoch != epoch_) {
      cell.read_epoch = epoch_;
      cell.other_warps = false;
      cell.strong_reads = true;
      cell.read_lanes = 0;
    } else if (cell.read_warp != warp.index()) {
      cell.other_warps = true;
      cell.read_lanes = 0;
    } else if (cell.read_sync != sync) {
      cell.read_lanes = 0;  // the newest readers are enough: a chain of barriers orders the others as a rule
    }
    cell.read_warp = static_cast<int16_t>(warp.index());
    cell.read_lanes |= 1u << lane;
    cell.read_sync = sync;
    cell.read_pc = pc;
    cell.strong_reads &= strong;
  }
}

void RaceDetector::write(Warp& warp, const Instruction& in, int lane, size_t offset, size_t bytes, Strength strength,
                         const std::byte* value) {
  const bool strong = strength == Strength::strong;
  const std::byte* present = warp.block().shared().data();
  for (size_t i = offset; i < offset + bytes; ++i) {
    Cell& cell = cells_[i];
    const bool no_change = value != nullptr && present[i] == value[i - offset] && cell.write_epoch == epoch_;
    if (!no_change) {
      if (!(strong && cell.strong_write)) check_writer(warp, in, lane, cell, i, "writes");
      check_readers(warp, in, lane, cell, i, strength);
    }
    cell.write_epoch = epoch_;
    cell.writer = static_cast<int16_t>(warp.thread(lane));
    cell.write_sync = syncs_[warp.index()].count;
    cell.write_pc = static_cast<uint32_t>(&in - warp.block().program().code.data());
    cell.strong_write = strong;
  }
}

}  // namespace simgpu
