// pal/loss.h: the losses on a similarity graph: functions (z, batch, comm) that return value, terms and gradient.
#pragma once

#include "core/loss/barlow.h"
#include "core/loss/criterion.h"
#include "core/loss/nnclr.h"
#include "core/loss/sampled_vic2.h"
#include "core/loss/simclr.h"
#include "core/loss/supervised.h"
#include "core/loss/vic2.h"
#include "core/loss/vicreg.h"
