// scl: the spectral contrastive loss on the unit sphere: VIC² of z / ‖z‖. Formula and terms are those of core/loss/vic2.h.
#pragma once

#include "core/loss/vic2.h"

namespace pal::loss {

Criterion make_scl(const Vic2Options& options);

}  // namespace pal::loss
