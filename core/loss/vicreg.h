// vicreg: VICReg with the hinge on a graph: invariance over the edges of G, variance and covariance against collapse, and a
// margin for rows known to differ.
//
// Math, loss.reduction=mean:
//   invariance  weight · Σ_{i≠j} G⁺_ij ‖z_i − z_j‖² / (E · D)     E = Σ_{i≠j} |G_ij|; 0 when the graph has no edge
//   margin      weight · Σ_{i≠j} G⁻_ij relu(m − ‖z_i − z_j‖)² / (E · D), the weight of the invariance: taken literally, a
//               negative weight would make the loss unbounded below. A term of graphs that have one (core/loss/margin.h)
//   variance    weight · mean_g Σ_k relu(1 − sqrt(C^g_kk + ε)) / D
//   covariance  weight · s · mean_g Σ_{k≠l} (C^g_kl)² / D
//   per_view: a group g is a view, s = 2 (the official code, which halves the variance term of each of its two views and
//   adds up their covariance terms; more views keep that scale). pooled: one group of all rows, s = 1 (the paper).
// loss.reduction=sum drops / (E · D) and / D: with pooled moments it is the formula of the paper.
// Reference: Bardes, Ponce, LeCun, "VICReg" (ICLR 2022).
#pragma once

#include "core/loss/criterion.h"
#include "core/loss/moment_terms.h"

namespace pal::loss {

struct VicregOptions {
  double invariance = 25, variance = 25, covariance = 1;  // weights
  double epsilon = 1e-4;
  Moments moments = Moments::per_view;
  Reduction reduction = Reduction::mean;
  double margin = 0;  // m; 0: sqrt(2D), how far rows with independent columns of variance 1 are
};

Criterion make_vicreg(const VicregOptions& options);

}  // namespace pal::loss
