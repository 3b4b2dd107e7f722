// settings: how the stand-in runs kernels, from environment variables.
#pragma once

#include <cstdint>
#include <string>

namespace simgpu {

enum class RaceMode { off, on };
enum class StreamMode { now, late };

struct Settings {
  // SIMGPU_SEED: 0 runs warps in their order; any other value draws the order of warps and the length of their
  // turns from it, so that a kernel which relies on luck gives other results.
  uint64_t seed = 0;
  // SIMGPU_RACE=1: two threads of a block that touch the same byte of shared memory, one of them writing, with no
  // barrier between them, are an error.
  RaceMode race = RaceMode::off;
  // SIMGPU_LIMIT: warp-instructions one launch may take before it counts as endless.
  uint64_t limit = 400'000'000;
  // SIMGPU_STREAMS=late: asynchronous work starts only when a sync, an event wait or a query makes it.
  StreamMode streams = StreamMode::now;
  // SIMGPU_DEVICES=n: as many devices are visible. 0: a machine without one.
  int devices = 1;
  // SIMGPU_MEMORY: bytes of device memory.
  uint64_t memory = uint64_t{4} << 30;
  // SIMGPU_DRIVER: the CUDA version that the driver supports, as cudaDriverGetVersion gives it.
  int driver = 13000;
  // SIMGPU_BREAK=n or n:rank: the device is lost (an ECC error) at the n-th launch of a kernel, on one rank or on all.
  uint64_t break_at = 0;
  // SIMGPU_BUS: the PCI address of the device. By default each rank of an MPI job has a device of its own.
  std::string bus;
  // SIMGPU_EXCLUSIVE=folder: devices are in exclusive mode: one process has a context on each. Its locks lie there.
  std::string exclusive;
  // SIMGPU_STATS=1: each launch prints its warp-instructions to stderr.
  bool stats = false;

  // Throws std::invalid_argument with the variable's name if a value is not understood.
  static Settings from_environment();
};

}  // namespace simgpu
