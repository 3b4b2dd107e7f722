// batch_norm: batch norm whose statistics are those of all ranks of a Comm, fused with ReLU and a residual addition.
//
// Shapes: x (rows, C) or (n, C, height, width), contiguous or channels-last; a rank may have no rows.
// Math:   x̂ = (x − mean) / sqrt(var + ε), y = act(weight·x̂ + bias + residual); the backward pass differentiates through
//         the statistics of all ranks. weight's and bias's gradients are this rank's share: gradients are summed.
// Order:  sums over rows are accumulated and reduced in fp64 and rounded once, forward and backward: splitting the rows
//         over ranks changes nothing after rounding. Right for |mean| ≫ std.
// Collective: in training, forward and backward (one all-reduce each; a second in forward when |mean| ≫ std).
// Running statistics (as PyTorch's: unbiased variance) are pending until commit(), so that a skipped step leaves none.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>

#include "core/comm/comm.h"
#include "kernels/batch_norm.h"

namespace pal::model {

using kernels::Activation;

struct BatchNormOptions {
  comm::Comm* comm = nullptr;  // whose rows make the statistics; null: this rank's own. Must outlive the module.
  at::ScalarType dtype = at::kFloat;
  double epsilon = 1e-5;
  double momentum = 0.1;
};

class BatchNorm : public torch::nn::Module {
 public:
  BatchNorm(int64_t channels, const BatchNormOptions& options);

  // residual, when defined, has x's shape. In evaluation mode the running statistics are used and nothing is collective.
  at::Tensor forward(const at::Tensor& x, Activation act = Activation::none, const at::Tensor& residual = {});

  void commit();   // the pending statistics become the running ones
  void discard();  // they never were

  at::Tensor weight, bias;                                    // (C)
  at::Tensor running_mean, running_var, num_batches_tracked;  // (C), (C), ()

 private:
  void remember(const at::Tensor& mean, const at::Tensor& unbiased_var);

  const BatchNormOptions options_;
  at::Tensor pending_mean_, pending_var_;
  int64_t pending_batches_ = 0;
};

// Every batch norm under `module`.
void commit_batch_norm(torch::nn::Module& module);
void discard_batch_norm(torch::nn::Module& module);

}  // namespace pal::model
