// block: one thread block: its warps, its shared and local memory, its barriers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/simgpu/launch.h"
#include "tests/simgpu/program.h"
#include "tests/simgpu/race.h"
#include "tests/simgpu/shared.h"
#include "tests/simgpu/warp.h"

namespace simgpu {

class Block {
 public:
  Block(Memory& memory, const Kernel& kernel, const LaunchShape& shape, const void* arguments,
        const Settings& settings);

  // The block of this index, from its start to its end.
  void run(Dim3 index);
  uint64_t instructions() const { return instructions_; }
  uint64_t tick() { return ++ticks_; }  // a clock that only grows

  // ---- for warps and handlers ----
  const Program& program() const { return *kernel_.program; }
  const Kernel& kernel() const { return kernel_; }
  Memory& memory() { return memory_; }
  SharedMemory& shared() { return shared_; }
  RaceDetector* race() { return race_.get(); }  // nullptr when races are not looked for
  std::byte* local(int thread) { return local_.data() + static_cast<size_t>(thread) * kernel_.local_bytes; }
  const std::byte* parameters() const { return parameters_.data(); }
  // Whether [begin, end) lies in one allocation that passed before, so that the table need not be asked again.
  bool known(uintptr_t begin, uintptr_t end, Access access) const;
  void learn(uintptr_t address, Access access);
  // How many instructions a group of lanes runs before the other groups of its warp.
  int64_t group_turn();
  // Lanes reach a barrier; those of bar.arrive do not wait.
  void arrive(Warp& warp, const Instruction& in, uint32_t mask);
  FaultPlace place(const Instruction& in, int thread) const;

 private:
  struct Barrier {
    int arrived = 0, expected = 0;
  };
  struct Known {
    uintptr_t begin = 0, end = 0;
  };

  void preset_registers(Dim3 index);
  uint64_t preset_value(const Preset& preset, Dim3 index, int thread) const;
  Warp* next_warp();
  int64_t warp_turn();
  bool release_barriers();
  void release(int id);
  [[noreturn]] void stuck();
  std::array<uint32_t, 3> thread_index(int thread) const;

  Memory& memory_;
  const Kernel& kernel_;
  LaunchShape shape_;
  Settings settings_;
  int threads_;
  size_t dynamic_offset_;
  std::vector<std::byte> parameters_, local_;
  SharedMemory shared_;
  std::unique_ptr<RaceDetector> race_;
  std::unique_ptr<std::byte[]> registers_;
  std::byte* first_register_;
  std::vector<uint32_t> predicates_;
  std::vector<std::unique_ptr<Warp>> warps_;
  size_t next_ = 0;
  std::array<Barrier, 16> barriers_;
  std::array<std::array<Known, 4>, 2> known_;  // by Access
  std::array<size_t, 2> next_known_{};
  std::mt19937_64 random_;
  Dim3 index_;
  bool constants_done_ = false;
  uint64_t instructions_ = 0, ticks_ = 0;
};

}  // namespace simgpu
