// backbones: the networks that core/model/encoder.cpp chooses from, and the projector on top of them.
//
// To add a backbone: one source file, its declaration here, one line in the table of encoder.cpp, one test.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/model/batch_norm.h"
#include "core/model/layers.h"

namespace pal::model {

// convnet: a small encoder for 28×28 and 32×32 images: 3×3 convolution, batch norm, ReLU per block, then the mean over
// the plane. Every block but the first halves the plane by its stride.
std::shared_ptr<Backbone> make_convnet(const std::vector<int64_t>& widths, int64_t channels,
                                       const BatchNormOptions& norm);

// resnet: ResNet-18, 34 and 50 with torchvision's parameter names, without the classifier.
//
// Stems: imagenet is torchvision's (7×7 stride 2, max pooling); cifar has 3×3 stride 1 and no pooling, for images near
// 32 pixels. In the bottleneck the stride is in the 3×3 convolution, as torchvision's.
// Reference: He et al., "Deep residual learning for image recognition" (2015).
enum class Stem { cifar, imagenet };

// depth: 18, 34 or 50.
std::shared_ptr<Backbone> make_resnet(int depth, Stem stem, int64_t channels, const BatchNormOptions& norm);

// vit: vision transformers ViT-S and ViT-B with timm's parameter names, without the classifier.
//
// Shapes: images (n, C, height, width), sides multiples of the patch → the class token after the last norm (n, width).
//   Positions are those of the image size it was built for; other sizes (small views) take them resampled, bicubic.
// Random: stochastic depth drops a branch for a row by a draw of (seed, branch, the row's pixels), and of nothing else: so
//   neither the split over ranks nor that into micro-batches changes it. Block l of L drops with rate · l / (L − 1).
// Reference: Dosovitskiy et al., "An image is worth 16x16 words" (2020); Huang et al., "Deep networks with stochastic depth".
struct ViTSpec {
  int64_t width = 384, heads = 6, depth = 12;  // ViT-S; ViT-B has 768 and 12
  int64_t patch = 16;
  int64_t image = 224;  // side in pixels that the positions are for
  int64_t channels = 3;
  double drop_path = 0;  // rate of the last block
  uint64_t seed = 0;
  at::ScalarType dtype = at::kFloat;
};

std::shared_ptr<Backbone> make_vit(const ViTSpec& spec);

// (1, 1 + rows·cols, D), a class token first → the same of another grid: bicubic with antialiasing, as timm does.
at::Tensor resample_positions(const at::Tensor& positions, int64_t rows, int64_t cols);

// projector: the head: Linear – batch norm – ReLU for every width but the last, which is a Linear alone; no biases.
//
// Parameters are named as in a Sequential of those modules ("0.weight", "1.weight", "1.bias", …, "3.weight", …), as the
// official VICReg code has them.
class Projector : public torch::nn::Module {
 public:
  // widths empty: the identity.
  Projector(int64_t in, const std::vector<int64_t>& widths, const BatchNormOptions& norm);
  at::Tensor forward(const at::Tensor& features);  // (rows, in) → (rows, dims())
  int64_t dims() const { return dims_; }

 private:
  int64_t dims_;
  std::vector<std::shared_ptr<Linear>> linears_;
  std::vector<std::shared_ptr<BatchNorm>> norms_;  // one fewer
};

}  // namespace pal::model
