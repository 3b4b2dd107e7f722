// micro_batches: a step whose activations do not fit, in pieces; exact for losses that couple the whole batch.
//
// First all pieces are encoded without autograd, the criterion sees all of Z once, then each piece is encoded again and
// its rows of dz go back through it: the gradient is that of the whole batch, for one more forward pass.
// Position p of the GLOBAL batch lies in piece p mod count, so a piece holds the same samples for any number of ranks,
// and each rank an even share of it. Batch norm takes the statistics of a piece (over all ranks): without batch norm a
// step in pieces is the step in one; with it, it is that of a network whose batch norm sees a piece at a time. Running
// statistics follow the pieces in order, once.
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

  // Collective where `encode` is. z of all rows, without autograd.
  at::Tensor forward(const Encode& encode, const at::Tensor& images) const;
  // Collective where `encode` is. Gradients add up in the parameters. before_last() is called once no piece but one is left.
  void backward(const Encode& encode, const at::Tensor& images, const at::Tensor& dz,
                const std::function<void()>& before_last) const;

 private:
  std::vector<at::Tensor> rows_;  // by piece: this rank's rows, view-major
};

}  // namespace pal::model
