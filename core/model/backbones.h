// backbones: the networks that core/model/encoder.cpp chooses from, and the projector on top of them.
//
// To add a backbone: one source file, one line in core/config/backbones.def, one test, one paragraph of `pal help config`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/model/batch_norm.h"
#include "core/model/layers.h"
#include "core/model/spec.h"

namespace pal::model {

// convnet: a small network for 28×28 and 32×32 images: blocks of 3×3 convolution, batch norm and ReLU, then global
// average pooling. Every block but the first has stride 2.
std::shared_ptr<Backbone> make_convnet(const std::vector<int64_t>& widths, int64_t channels,
                                       const BatchNormOptions& norm);

// resnet: ResNet-18, 34 and 50 with torchvision's parameter names, without the classifier.
//
// Stems: imagenet is torchvision's (7×7 stride 2, max pooling); cifar has 3×3 stride 1 and no pooling, for images near
// 32 pixels. In the bottleneck the stride is in the 3×3 convolution, as in torchvision.
// Reference: He et al., "Deep residual learning for image recognition" (2015).
// depth: 18, 34 or 50.
std::shared_ptr<Backbone> make_resnet(int depth, Stem stem, int64_t channels, const BatchNormOptions& norm);

// vit: vision transformers ViT-S and ViT-B with timm's parameter names, without the classifier.
//
// Shapes: images (n, C, height, width), sides multiples of the patch → the class token after the last norm (n, width).
//   Position embeddings belong to one image size; for other sizes (small views) they are resampled (bicubic).
// Order: stochastic depth drops a branch for a row by a draw from (seed, branch, the row's pixels), so the result
//   depends neither on the number of ranks nor on micro-batches. Block l of L drops with rate · l / (L − 1).
// Reference: Dosovitskiy et al., "An image is worth 16x16 words" (2020); Huang et al., "Deep networks with stochastic
//   depth".
struct ViTSpec {
  int64_t width = 384, heads = 6, depth = 12;  // ViT-S; ViT-B has 768 and 12
  int64_t patch = 16;
  int64_t image = 224;  // image side of the position embeddings, in pixels
  int64_t channels = 3;
  double drop_path = 0;  // rate of the last block
  uint64_t seed = 0;
  at::ScalarType dtype = at::kFloat;
};

std::shared_ptr<Backbone> make_vit(const ViTSpec& spec);

// Resamples position embeddings (1, 1 + rows·cols, D), class token first, to another grid: bicubic with antialiasing,
// as timm.
at::Tensor resample_positions(const at::Tensor& positions, int64_t rows, int64_t cols);

// projector: the head: Linear, batch norm, ReLU for every width but the last, which is a Linear alone; no biases.
//
// Parameters are named as in a Sequential of those modules ("0.weight", "1.weight", "1.bias", …, "3.weight", …), as in
// the official VICReg code.
class Projector : public torch::nn::Module {
 public:
  // Empty widths: the identity.
  Projector(int64_t in, const std::vector<int64_t>& widths, const BatchNormOptions& norm);
  at::Tensor forward(const at::Tensor& features);  // (rows, in) → (rows, dims())
  int64_t dims() const { return dims_; }

 private:
  int64_t dims_;
  std::vector<std::shared_ptr<Linear>> linears_;
  std::vector<std::shared_ptr<BatchNorm>> norms_;  // one fewer than linears_
};

}  // namespace pal::model
