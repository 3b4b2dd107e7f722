#include "core/theory/criterion_loss.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace pal::theory {

loss::Batch class_batch(const std::vector<int64_t>& class_sizes) {
  loss::Batch batch;
  graph::BlockLayer layer;
  for (size_t c = 0; c < class_sizes.size(); ++c) {
    for (int64_t k = 0; k < class_sizes[c]; ++k) {
      layer.block.push_back(static_cast<int32_t>(c));
      batch.samples.push_back(static_cast<int64_t>(batch.samples.size()));
    }
  }
  layer.blocks = static_cast<int32_t>(class_sizes.size());
  const auto n = static_cast<int64_t>(batch.samples.size());
  batch.end = n;
  batch.rank_begin = {0, n};
  batch.views = 1;
  batch.graph.samples = n;
  batch.graph.views = 1;
  batch.graph.layers = {layer};
  return batch;
}

at::Tensor as_tensor(const Matrix& z) {
  at::Tensor t = at::empty({z.rows, z.cols}, at::kDouble);
  std::copy(z.data.begin(), z.data.end(), t.data_ptr<double>());
  return t;
}

Matrix as_matrix(const at::Tensor& z) {
  Matrix m(z.size(0), z.size(1));
  const at::Tensor whole = z.contiguous();
  std::copy_n(whole.data_ptr<double>(), whole.numel(), m.data.begin());
  return m;
}

loss::LossResult apply_criterion(const loss::Criterion& criterion, const Matrix& z, const loss::Batch& batch) {
  return criterion(as_tensor(z), batch, *comm::make_local_comm());
}

SmoothLoss criterion_loss(const loss::Criterion& criterion, const std::vector<int64_t>& class_sizes) {
  return [criterion, batch = class_batch(class_sizes)](const Matrix& z, Matrix& gradient) {
    const loss::LossResult result = apply_criterion(criterion, z, batch);
    gradient = as_matrix(result.dz);
    return result.value;
  };
}

}  // namespace pal::theory
