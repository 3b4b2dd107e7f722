// cuda_error: what an error of the CUDA runtime means to the user: a sentence, what to do, an exit code.
//
// Codes: what the user can change (driver, device, memory) is usage. A device that broke is lost: a restart, elsewhere
//   if possible, continues from the last checkpoint. All else is a bug.
#pragma once

#include <string>

#include "kernels/base/error.h"

namespace pal {

// `error` is a cudaError_t; `where` is shown for a bug.
Error cuda_error(int error, const std::string& where);

// What helps when the device's memory is full.
inline constexpr const char* kLessDeviceMemory =
    "use a smaller train.global_batch or more ranks, encode in pieces with train.micro_batches=2 or more, or set "
    "train.precision=bf16; commands that do not train: --device=cpu";

}  // namespace pal
