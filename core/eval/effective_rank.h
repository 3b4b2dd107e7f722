// effective_rank: how many directions the rows of Z really use; 1 means collapse.
#pragma once

#include <ATen/core/Tensor.h>

namespace pal {

// The participation ratio (Σλ)² / Σλ² of the covariance's eigenvalues, in [1, D]; 0 for fewer than two rows. By the
// smaller of the D × D and the rows × rows product.
double effective_rank(const at::Tensor& z);

}  // namespace pal
