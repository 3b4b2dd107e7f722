// layers: convolution and linear layer without bias, and the interface of a backbone.
//
// The constructors leave the weights unset; encoder.cpp draws all of them.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>

namespace pal::model {

class Conv2d : public torch::nn::Module {
 public:
  Conv2d(int64_t in, int64_t out, int64_t kernel, int64_t stride, at::ScalarType dtype);  // padding kernel / 2
  // x (n, in, height, width), or (n, 1, height, width) for `in` equal channels (gray images): then the weights are
  // summed over their inputs, which gives the same result at lower cost.
  at::Tensor forward(const at::Tensor& x);

  at::Tensor weight;  // (out, in, kernel, kernel), channels-last, which avoids a permutation in every pass

 private:
  const int64_t stride_, padding_;
};

class Linear : public torch::nn::Module {
 public:
  Linear(int64_t in, int64_t out, at::ScalarType dtype);
  at::Tensor forward(const at::Tensor& x);  // (rows, in) → (rows, out)

  at::Tensor weight;  // (out, in)
};

// How the encoder draws the weights of a backbone (encoder.cpp).
enum class InitRule { convolutional, transformer };

// Images (n, channels, height, width) → features (n, dims()).
class Backbone : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& images) = 0;
  virtual int64_t dims() const = 0;
  virtual InitRule init_rule() const { return InitRule::convolutional; }
};

// Global average pooling: (n, C, height, width) → (n, C).
at::Tensor global_average(const at::Tensor& x);

}  // namespace pal::model
