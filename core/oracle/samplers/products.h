// products: matrix products whose bits depend neither on the threads nor on the place of a row (kernels/base/panels.h):
// the same embeddings give the same choice on any rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace pal::oracle {

// rows (n, D) × weight (D, C) → (n, C), float.
at::Tensor times(const at::Tensor& rows, const at::Tensor& weight);
// rows (n, D) × others (m, D)ᵀ → (n, m), float.
at::Tensor times_transposed(const at::Tensor& rows, const at::Tensor& others);
// rowsᵀ rows (D, D) in double.
std::vector<double> scatter(const at::Tensor& rows);

}  // namespace pal::oracle
