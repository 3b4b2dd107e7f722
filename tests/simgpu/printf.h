// printf: what kernels call without PTX: vprintf and __assertfail.
#pragma once

#include "tests/simgpu/program.h"

namespace simgpu {

// r: the local-memory offsets of the result, the format's address and the arguments' address.
void run_printf(Warp& warp, const Instruction& in, uint32_t mask);
// r[1..4]: of the addresses of the condition and the file, of the line, and of the function's name.
void run_assertfail(Warp& warp, const Instruction& in, uint32_t mask);

}  // namespace simgpu
