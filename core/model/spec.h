// spec: the description of a model, without LibTorch's modules, for code that does not run it.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

namespace pal::model {

struct ModelSpec {
  std::string backbone = "convnet";  // convnet, resnet18, resnet34, resnet50, vit_s, vit_b; none: identity
  std::string stem = "cifar";        // cifar (3×3, no pooling), imagenet (7×7 / 2 + pooling)
  std::vector<int64_t> convnet_widths = {32, 64, 128};
  std::vector<int64_t> projector = {256, 256, 64};  // widths after the features; empty: none
  // widths after the projector, the last one the embedding's; empty: none
  std::vector<int64_t> predictor;
  int64_t patch = 16;                 // ViT: side of a patch in pixels
  int64_t image = 0;                  // ViT: side of the images in pixels
  double drop_path = 0;               // ViT: stochastic depth
  int64_t channels = 3;               // of the input; backbone none: its width
  std::string batch_norm = "global";  // global, node, off (local statistics)
  uint64_t seed = 0;
  c10::ScalarType dtype = c10::ScalarType::Float;
};

}  // namespace pal::model
