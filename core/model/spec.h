// spec: the description of a model, without LibTorch's modules, for code that does not run it.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/choices.h"

namespace pal::model {

enum class BackboneKind {
#define PAL_BACKBONE(name, published) name,
#include "core/config/backbones.def"
};
inline constexpr config::NamedChoice<BackboneKind> kBackbones[] = {
#define PAL_BACKBONE(name, published) {#name, BackboneKind::name},
#include "core/config/backbones.def"
};

enum class Stem { cifar, imagenet };  // of a ResNet: 3×3 without pooling, or 7×7 / 2 with pooling
inline constexpr config::NamedChoice<Stem> kStems[] = {{"cifar", Stem::cifar}, {"imagenet", Stem::imagenet}};

enum class BatchNormScope { global, node, off };  // whose rows make the batch statistics: off is the rank's own
inline constexpr config::NamedChoice<BatchNormScope> kBatchNormScopes[] = {
    {"global", BatchNormScope::global}, {"node", BatchNormScope::node}, {"off", BatchNormScope::off}};

struct ModelSpec {
  BackboneKind backbone = BackboneKind::convnet;  // none: the input itself
  Stem stem = Stem::cifar;
  std::string init;  // weights that the backbone begins with, a safetensors file; "": drawn
  std::vector<int64_t> convnet_widths = {32, 64, 128};
  std::vector<int64_t> projector = {256, 256, 64};  // widths after the features; empty: none
  std::vector<int64_t> predictor;                   // widths after the projector, the last one its own; empty: none
  int64_t patch = 16;                               // ViT: side of a patch in pixels
  int64_t image = 0;                                // ViT: side of the images in pixels
  double drop_path = 0;                             // ViT: stochastic depth
  int64_t channels = 3;                             // none: of the input, all of it
  BatchNormScope batch_norm = BatchNormScope::global;
  uint64_t seed = 0;
  c10::ScalarType dtype = c10::ScalarType::Float;
};

}  // namespace pal::model
