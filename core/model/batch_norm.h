// batch_norm: batch norm with statistics over all ranks of a Comm, fused with ReLU and a residual addition.
//
// Shapes: x (rows, C) or (n, C, height, width), contiguous or channels-last; a rank may have no rows.
// Math:   x̂ = (x − mean) / sqrt(var + ε), y = act(weight·x̂ + bias + residual). Backward differentiates through the
//         statistics of all ranks. The gradients of weight and bias are this rank's share; ranks sum gradients.
// Order:  sums over rows are accumulated and reduced in fp64 and rounded once, so that the split of rows over ranks has
//         no effect after rounding. Accurate for |mean| ≫ std.
// Collective: forward and backward in training (one all-reduce each; on the CPU a second in forward if |mean| ≫ std).
// Running statistics (unbiased variance, as in PyTorch) are pending until commit(), so that a skipped step changes
// none.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>

#include "core/comm/comm.h"
#include "kernels/batch_norm.h"

namespace pal::model {

using kernels::Activation;

struct BatchNormOptions {
  comm::Comm* comm = nullptr;  // ranks that share statistics; null: this rank alone. Must outlive the module.
  at::ScalarType dtype = at::kFloat;
  double epsilon = 1e-5;
  double momentum = 0.1;
};

class BatchNorm : public torch::nn::Module {
 public:
  BatchNorm(int64_t channels, const BatchNormOptions& options);

  // residual is undefined or has x's shape. Evaluation mode uses the running statistics and has no collective.
  at::Tensor forward(const at::Tensor& x, Activation act = Activation::none, const at::Tensor& residual = {});

  void commit();   // pending statistics become the running statistics
  void discard();  // drops the pending statistics

  at::Tensor weight, bias;                                    // (C)
  at::Tensor running_mean, running_var, num_batches_tracked;  // (C), (C), ()

 private:
  void remember(const at::Tensor& mean, const at::Tensor& unbiased_var);

  const BatchNormOptions options_;
  at::Tensor pending_mean_, pending_var_;
  int64_t pending_batches_ = 0;
};

// Apply to every batch norm under `module`.
void commit_batch_norm(torch::nn::Module& module);
void discard_batch_norm(torch::nn::Module& module);

}  // namespace pal::model
