// mpi_world: the world that the tests of an MPI job share.
#pragma once

#include "dist/comm/world.h"

namespace pal::dist {
World& test_world();
}  // namespace pal::dist
