// race: finds two threads of a block that touch the same byte of shared memory, at least one of them writing, with
// nothing that orders them.
//
// Accesses are ordered between warps by a block barrier; between lanes of a warp that or a bar.warp.sync that names
// both. Shuffles and votes do not. Two strong accesses (atomics, volatile, relaxed) never race, and writing the value
// that is already there is not reported. Each byte remembers its last writer and its readers since the last block
// barrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/simgpu/program.h"

namespace simgpu {

enum class Strength : uint8_t { weak, strong };

class RaceDetector {
 public:
  RaceDetector(size_t shared_bytes, int warps);
  // A block barrier, or a new block: nothing before it can race with anything after.
  void block_barrier() { ++epoch_; }
  void warp_barrier(Warp& warp, uint32_t mask);
  // Throws Fault(race).
  void read(Warp& warp, const Instruction& in, int lane, size_t offset, size_t bytes, Strength strength);
  void write(Warp& warp, const Instruction& in, int lane, size_t offset, size_t bytes, Strength strength,
             const std::byte* value);

 private:
  struct Cell {
    uint32_t write_epoch = 0, write_sync = 0, write_pc = 0;
    uint32_t read_epoch = 0, read_sync = 0, read_pc = 0, read_lanes = 0;
    int16_t writer = -1, read_warp = -1;
    bool strong_write = false, strong_reads = false, other_warps = false;
  };
  struct WarpSyncs {
    uint32_t count = 0, last_full = 0;
    std::vector<uint32_t> last = std::vector<uint32_t>(kLanes * kLanes);  // of each pair of lanes
  };
  bool ordered(const WarpSyncs& syncs, int lane, int other, uint32_t since) const;
  void check_writer(Warp& warp, const Instruction& in, int lane, const Cell& cell, size_t offset, const char* verb);
  void check_readers(Warp& warp, const Instruction& in, int lane, const Cell& cell, size_t offset, Strength strength);
  [[noreturn]] void report(Warp& warp, const Instruction& in, int lane, size_t offset, const char* verb, int other,
                           const char* other_verb, uint32_t other_pc) const;

  uint32_t epoch_ = 1;
  std::vector<Cell> cells_;
  std::vector<WarpSyncs> syncs_;
};

}  // namespace simgpu
