// barlow: Barlow Twins on a graph: pulls the correlation of the columns of Z across the edges of G to the identity.
//
// Math:  loss.scale · (Σ_k (1 − C_kk)² + λ Σ_{k≠l} C_kl²). Ĝ = Deg^-½ G Deg^-½ with the degrees of |G|; degree 0 gives
//        0.
//   graph  C = Z̃ᵀĜZ̃ over all rows. Z̃ has columns of norm 1, not centered; a column of norm 0 stays 0.
//          graph.self_loops chooses whether the diagonal of G counts.
//   cross  the mean over pairs of views a < b of the loss of C = X_aᵀĜX_b / N. X_v is view v with columns of mean 0 and
//          variance 1 (biased, ε = 1e-5, as batch norm without weights); Ĝ is that of the N positions. On the graph of
//          views Ĝ = I, which is the textbook form.
//   Gradient: M = dL/dC in fp64, then 2 ĜZ̃M (graph), or ĜX_b Mᵀ and ĜX_a M (cross), then through the normalization.
//          The row sums of the normalization follow from C, so one product with G is enough.
//   loss.reduction has no effect.
// Terms: invariance (the diagonal) and redundancy (the rest).
// Collective: all-reduces column norms (or means and variances) and C in fp64, and what the product with G needs.
// Reference: Zbontar et al., "Barlow Twins" (ICML 2021).
#pragma once

#include "core/loss/criterion.h"

namespace pal::loss {

struct BarlowOptions {
  BarlowForm form = BarlowForm::graph;
  double lambda = 0.005;
  double scale = 1;
  graph::SelfLoops self_loops = graph::SelfLoops::off;  // of the graph form
};

// Throws Error (usage) for the cross form on a single view.
Criterion make_barlow(const BarlowOptions& options);

}  // namespace pal::loss
