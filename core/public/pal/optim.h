// pal/optim.h: SGD, LARS and AdamW over named parameters, and the learning rate of a step.
#pragma once

#include "core/optim/optimizer.h"
#include "core/optim/schedule.h"
