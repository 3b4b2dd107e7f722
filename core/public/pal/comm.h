// pal/comm.h: Comm, the collectives that losses and batch norm call; make_local_comm() is the one of a single process.
#pragma once

#include "core/comm/comm.h"
