// small_network: a perceptron with two hidden layers, trained by Adam on VIC² over mini-batches of a graph.
//
// Math:  per step B of n rows: Σ_{i,j in B} (z_iᵀz_j − G_ij)²/π_ij, π_ij the probability that both are drawn (unbiased for
//        ‖ZZᵀ − G‖²), plus the optimizer's weight decay.
// Nothing of LibTorch: the matrices are a few dozen wide, and a trial is a thread.
#pragma once

#include <cstdint>

#include "core/theory/matrix.h"
#include "kernels/base/philox.h"

namespace pal::theory {

struct NetworkOptions {
  int64_t hidden = 64, width = 5;
  int64_t steps = 1200, batch = 64;
  double rate = 3e-3;  // falls to 0 along a cosine
  double decay = 1e-4;
};

class SmallNetwork {
 public:
  SmallNetwork(int64_t inputs, const NetworkOptions& options, Random& random);
  Matrix forward(const Matrix& x) const;  // (n, width)
  void train(const Matrix& x, const Matrix& graph, Random& random);

 private:
  struct Layer {
    Matrix weight;  // (in + 1, out): the last row is the bias
    Matrix gradient, m, v;
  };
  static Matrix apply(const Layer& layer, const Matrix& x);
  static Matrix backward(Layer& layer, const Matrix& x, const Matrix& dy);  // fills the gradient; returns dx

  NetworkOptions options_;
  Layer layers_[3];
};

}  // namespace pal::theory
