// sampled_vic2: VIC² from some pairs of rows: I, whose relations are used, and J, against collapse.
//
// Math, R rows:
//   unbiased  (Σ_J (z_iᵀz_j)² / π^J_ij − 2 Σ_I G_ij z_iᵀz_j / π^I_ij) / R², in expectation (‖ZZᵀ − G‖² − ‖G‖²) / R²
//   printed   (Σ_I G_ij ‖z_i − z_j‖² / π^I_ij + Σ_J R(z_i, z_j) / π^J_ij) / R²,  R(a, b) = (aᵀb)² − ‖a‖² − ‖b‖²: the form of
//             the paper; in expectation (‖ZᵀZ − R·1‖² − R²D + 2 Tr Zᵀ(Deg − G)Z) / R², another loss unless all degrees are R
//   Batch gives I and J with their inclusion probabilities π; one that it does not give is all R² pairs, at the cost of a
//   product instead of a list. loss.reduction=sum drops / R². Weights of any sign are taken as they are.
// Terms: alignment (over I) and repulsion (over J).
#pragma once

#include "core/loss/criterion.h"

namespace pal::loss {

struct SampledVic2Options {
  SampledForm form = SampledForm::unbiased;
  graph::SelfLoops self_loops = graph::SelfLoops::on;
  Reduction reduction = Reduction::mean;
};

Criterion make_sampled_vic2(const SampledVic2Options& options);

}  // namespace pal::loss
