// moment_terms: the variance and covariance terms of the global batch and their gradient on this rank's rows.
//
// Math: statistics of each view (per_view) or of all rows (pooled), with the unbiased covariance / (n − 1).
// Collective: in fp64 the mean, then either the packed second moment (all-reduce, covariance form) or the rows
//   (all-gather, Gram form), whichever is smaller (kernels::covariance_form_wins). The choice does not depend on W.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/loss/criterion.h"
#include "kernels/moments.h"

namespace pal::loss {

// Sums over the groups (V views, or one), unweighted: Σ_g Σ_k relu(γ − sqrt(C_kk + ε)) and Σ_g Σ_{k≠l} C_kl².
struct MomentTerms {
  double variance = 0;
  double covariance = 0;
};

// Collective. dz += the gradient of variance_weight · variance + covariance_weight · covariance. The terms are global.
// Throws Error (usage) for a group of fewer than two rows, which has no variance.
MomentTerms add_moment_terms(const at::Tensor& dz, const at::Tensor& z, const Batch& batch, comm::Comm& comm,
                             Moments moments, const kernels::MomentsOptions& options);

// Collective. Packed upper triangle of Σ_i (z_i − mean)(z_i − mean)ᵀ over all ranks, fp64; mean (D) fp64.
at::Tensor second_moment(const at::Tensor& rows, const at::Tensor& mean, comm::Comm& comm,
                         const kernels::MomentsOptions& options, int threads);

// Collective. ‖ZᵀZ‖²_F = Σ_ij (z_iᵀz_j)² over all rows of all ranks; dz += scale · its gradient 4 Z·ZᵀZ.
double add_gram_square(const at::Tensor& dz, const at::Tensor& z, comm::Comm& comm, double scale, int threads);

}  // namespace pal::loss
