// simclr: SimCLR on a graph: every positive pair is drawn together against all rows of the global batch.
//
// Math:  −Σ_{i≠j} G⁺_ij log softmax_k(s_ik)_j / ΣG⁺,  s_ik = z̃_iᵀz̃_k / τ over k ≠ i,  z̃ = z / ‖z‖
//        = (Σ_i deg_i lse_i − Σ_{i≠j} G⁺_ij s_ij) / ΣG⁺,  deg the degrees of G⁺
//        gradient in z̃_i: (Σ_j (deg_i e^{s_ij−lse_i} + deg_j e^{s_ij−lse_j}) z̃_j − 2 (G⁺Z̃)_i) / (τ ΣG⁺), then unit_rows'.
//        Negative weights neither attract nor repel: their rows stay in the denominator. loss.reduction=sum drops / ΣG⁺.
//        A graph without a positive weight: 0.
// Terms: alignment (the positive pairs) and contrast (the denominators).
// Ranks: all-gather of z̃ and of lse, a number a row (degrees are known to every rank); nothing returns.
// Reference: Chen et al., "A simple framework for contrastive learning of visual representations" (ICML 2020); on the
//        two-view graph this is its NT-Xent, the mean over 2N rows.
#pragma once

#include "core/loss/contrast.h"

namespace pal::loss {

Criterion make_simclr(const ContrastOptions& options);

}  // namespace pal::loss
