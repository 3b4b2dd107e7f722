// criterion_loss: the criteria of core/loss as functions of a free Z on the supervised graph, for the checks of theory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/loss/criterion.h"
#include "core/theory/minimize.h"

namespace pal::theory {

// One view per sample, samples sorted by class, one process.
loss::Batch class_batch(const std::vector<int64_t>& class_sizes);
at::Tensor as_tensor(const Matrix& z);  // a copy, float64
Matrix as_matrix(const at::Tensor& z);
loss::LossResult apply_criterion(const loss::Criterion& criterion, const Matrix& z, const loss::Batch& batch);
SmoothLoss criterion_loss(const loss::Criterion& criterion, const std::vector<int64_t>& class_sizes);

}  // namespace pal::theory
