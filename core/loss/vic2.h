// vic2: VIC², the spectral contrastive loss on a graph.
//
// Math:  ‖ZZᵀ − G‖²_F / R² = (‖ZᵀZ‖² − 2 Tr ZᵀGZ + ‖G‖²) / R², R rows of the global batch; gradient 4 (Z·ZᵀZ − GZ) /
//        R². No R × R matrix is formed. Negative weights enter unchanged. loss.reduction=sum drops / R².
// Terms: gram, alignment and graph, the three summands on the right.
// Reference: HaoChen et al., "Provable guarantees for self-supervised deep learning with spectral contrastive loss".
#pragma once

#include "core/loss/criterion.h"

namespace pal::loss {

struct Vic2Options {
  graph::SelfLoops self_loops = graph::SelfLoops::on;
  Reduction reduction = Reduction::mean;
};

Criterion make_vic2(const Vic2Options& options);

// scl: the same loss on the unit sphere, VIC² of z / ‖z‖.
Criterion make_scl(const Vic2Options& options);

}  // namespace pal::loss
