// vit: vision transformers ViT-S and ViT-B with timm's parameter names, without the classifier.
//
// Shapes: images (n, C, height, width), sides multiples of the patch → the class token after the last norm (n, width).
//   Positions are those of the image size it was built for; other sizes (small views) take them resampled, bicubic.
// Random: stochastic depth drops a branch for a row by a draw of (seed, branch, the row's pixels), and of nothing else: so
//   neither the split over ranks nor that into micro-batches changes it. Block l of L drops with rate · l / (L − 1).
// Reference: Dosovitskiy et al., "An image is worth 16x16 words" (2020); Huang et al., "Deep networks with stochastic depth".
#pragma once

#include <cstdint>
#include <memory>

#include "core/model/layers.h"

namespace pal::model {

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

}  // namespace pal::model
