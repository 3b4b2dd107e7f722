// sampled_vic2: VIC² estimated from sampled pairs of rows: I for the alignment, J for the repulsion.
//
// Math, R rows:
//   unbiased  (Σ_J (z_iᵀz_j)² / π^J_ij − 2 Σ_I G_ij z_iᵀz_j / π^I_ij) / R², in expectation (‖ZZᵀ − G‖² − ‖G‖²) / R²
//   printed   (Σ_I G_ij ‖z_i − z_j‖² / π^I_ij + Σ_J R(z_i, z_j) / π^J_ij) / R², R(a, b) = (aᵀb)² − ‖a‖² − ‖b‖²: the
//             form of the paper. In expectation (‖ZᵀZ − R·1‖² − R²D + 2 Tr Zᵀ(Deg − G)Z) / R², which is a different
//             loss unless all degrees are R
//   Batch holds I and J with their inclusion probabilities π. A missing sample means all R² pairs, computed as a matrix
//   product. loss.reduction=sum drops / R². Negative weights enter unchanged.
// Terms: alignment (over I) and repulsion (over J).
#pragma once

#include <cstdint>
#include <vector>

#include "core/loss/criterion.h"

namespace pal::loss {

struct SampledVic2Options {
  SampledForm form = SampledForm::unbiased;
  graph::SelfLoops self_loops = graph::SelfLoops::on;
  Reduction reduction = Reduction::mean;
};

Criterion make_sampled_vic2(const SampledVic2Options& options);

// Draws `count` pairs of `rows` rows by (seed, step).
PairSample draw_pairs(int64_t rows, int64_t count, PairDraw draw, uint64_t seed, uint64_t step);

}  // namespace pal::loss
