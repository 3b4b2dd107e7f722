// vicreg: VICReg on a graph: invariance over the edges of G, variance and covariance terms against collapse, and a
// margin between rows known to differ.
//
// Math, loss.reduction=mean:
//   invariance  weight · Σ_{i≠j} G⁺_ij ‖z_i − z_j‖² / (E · D)     E = Σ_{i≠j} |G_ij|; 0 without edges
//   margin      weight · Σ_{i≠j} G⁻_ij relu(m − ‖z_i − z_j‖)² / (E · D), weight that of the invariance. It replaces the
//               invariance of negative edges, which is unbounded below. Only for graphs with negative weights
//   variance    weight · mean_g Σ_k relu(1 − sqrt(C^g_kk + ε)) / D
//   covariance  weight · s · mean_g Σ_{k≠l} (C^g_kl)² / D
//   per_view: a group g is a view, s = 2. This is the official code, which halves the variance term of each of its two
//   views and sums their covariance terms; more views keep that scale. pooled: one group of all rows, s = 1 (the
//   paper). loss.reduction=sum drops / (E · D) and / D; with pooled moments that is the formula of the paper.
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
  double margin = 0;  // m; 0: sqrt(2D), the distance of rows with independent columns of variance 1
};

Criterion make_vicreg(const VicregOptions& options);

}  // namespace pal::loss
