// micro_batches: a training step in pieces to save memory; exact for losses that couple the whole batch.
//
// The step encodes all pieces without autograd and calls the criterion once on all of Z. Then it encodes each piece
// again and back-propagates its rows of dz. The gradient is that of the whole batch, at the cost of one more forward
// pass.
// Order: position p of the GLOBAL batch is in piece p mod count, so a piece holds the same samples for any number of
//   ranks, and each rank an even share of it. Batch norm uses the statistics of a piece over all ranks; without batch
//   norm a step in pieces equals the undivided step. Running statistics follow the pieces in order, once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace pal::model {

class MicroBatches {
 public:
  // Images (views · positions, …) → rows of z, both view-major.
  using Encode = std::function<at::Tensor(const at::Tensor& images)>;

  // This rank holds positions [begin, end) of the global batch, in each view.
  MicroBatches(int64_t begin, int64_t end, int64_t views, int64_t count);

  // Collective if `encode` is. z of all rows, without autograd.
  at::Tensor forward(const Encode& encode, const at::Tensor& images) const;
  // Collective if `encode` is. Gradients accumulate in the parameters. before_last() is called before the last piece.
  void backward(const Encode& encode, const at::Tensor& images, const at::Tensor& dz,
                const std::function<void()>& before_last) const;

 private:
  std::vector<at::Tensor> rows_;  // by piece: this rank's rows, view-major
};

}  // namespace pal::model
