// barlow: BarlowTwins on a graph: the correlation of the columns of Z across the edges of G is drawn to the identity.
//
// Math:  Σ_k (1 − C_kk)² + λ Σ_{k≠l} C_kl², times loss.scale. Ĝ = Deg^-½ G Deg^-½ with the degrees of |G|; degree 0 → 0.
//   graph  C = Z̃ᵀĜZ̃ over all rows, Z̃ with columns of norm 1, not centered (a column of norm 0 stays 0); the diagonal of
//          G counts as graph.self_loops says.
//   cross  C = X_aᵀĜX_b / N for each pair of views a < b and their mean over the pairs: X_v is view v with columns of mean 0
//          and variance 1 (biased; ε = 1e-5 under the root: a batch norm without weights), Ĝ that of the N positions. On
//          the graph of views Ĝ = I: the textbook form.
// Gradient: C's gradient M in fp64, then 2 ĜZ̃M (graph), ĜX_b Mᵀ and ĜX_a M (cross), and through the normalization, whose
//          sums over rows follow from C: one product with G in all. There is nothing to average: loss.reduction changes nothing.
// Terms: invariance (the diagonal) and redundancy.
// Ranks: column norms (or means and variances), the product with G, and C (cross: with the column sums of ĜX), in fp64.
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

// cross with a single view throws Error (usage).
Criterion make_barlow(const BarlowOptions& options);

}  // namespace pal::loss
