// effective_rank: how many directions the rows of Z really use; 1 means collapse.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/loss/criterion.h"

namespace pal::eval {

// Collective. The participation ratio (Σλ)² / Σλ² of the eigenvalues of the global batch's covariance, in [1, D]; 0 for
// fewer than two rows, or equal ones. By the D × D or the rows × rows product, as the criteria choose
// (kernels::covariance_form_wins).
double effective_rank(const at::Tensor& z, const loss::Batch& batch, comm::Comm& comm);

}  // namespace pal::eval
