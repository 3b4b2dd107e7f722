// counters: counts the work of a program on the device by phase: launches, operators, copies, waits, allocations,
// collectives; and threads and sleeps of the program (../torch/threads.cpp).
//
// SIMGPU_COUNTERS=folder: each process that used a device writes <folder>/rank-<r>.json at its end. A phase is the nest
// of NVTX ranges that the program has open, the outermost one with its number ("step 3/backward");
// NVTX_INJECTION64_PATH must name this library for that.
// Thread: any. The phase is the process's: work of other threads counts for the range that is open at the time.
#pragma once

#include <cstddef>
#include <string>

namespace simgpu {

enum class Count { launch, op, copy, wait, read, collective, allocation, thread, sleep };

bool counting();
void count_event(Count kind, const std::string& what, size_t bytes = 0);

}  // namespace simgpu
