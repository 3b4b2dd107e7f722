// lost: the exit code of a job that lost a rank: one died, hangs, or differs from the others. A new start goes on from the
// last checkpoint.
#pragma once

#include "kernels/base/error.h"

namespace pal {

inline constexpr Exit kExitLost = static_cast<Exit>(71);

}  // namespace pal
