// pal/world.h: MPI from its start to its end, and the communicators of a run over ranks. Link pal::dist.
#pragma once

#include "dist/comm/world.h"
