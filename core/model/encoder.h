// encoder: backbone + projector (+ predictor) as one module, and the factory that builds it from the config.
//
// Parameter names are torchvision's (ViT: timm's) for the backbone (under "backbone.") and "projector.N.*", "predictor.N.*" for the heads, so that
// exported weights load in Python. Every batch norm is core/model/batch_norm.h.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/comm.h"

namespace pal {

class Config;

class Encoder : public torch::nn::Module {
 public:
  // Features before the projector (rows, feature_dims()).
  virtual at::Tensor features(const at::Tensor& images) = 0;
  // Embedding (rows, embedding_dims()) = projector(features).
  virtual at::Tensor project(const at::Tensor& features) = 0;
  at::Tensor forward(const at::Tensor& images) { return project(features(images)); }
  // What is trained on (core/loss/objective.h): the embedding, and with a predictor its predictions beside it.
  virtual at::Tensor outputs(const at::Tensor& images) = 0;
  virtual int64_t feature_dims() const = 0;
  virtual int64_t embedding_dims() const = 0;
};

struct ModelSpec {
  std::string backbone = "convnet";          // convnet, resnet18, resnet34, resnet50, vit_s, vit_b; none: the input itself
  std::string stem = "cifar";                // cifar (3×3, no pooling), imagenet (7×7 / 2 + pooling)
  std::vector<int64_t> convnet_widths = {32, 64, 128};
  std::vector<int64_t> projector = {256, 256, 64};   // widths after the features; empty: none
  std::vector<int64_t> predictor;            // widths after the projector, the last one its own; empty: none
  int64_t patch = 16;                        // ViT: side of a patch in pixels
  int64_t image = 0;                         // ViT: side of the images in pixels
  double drop_path = 0;                      // ViT: stochastic depth
  int64_t channels = 3;                      // none: of the input, all of it
  std::string batch_norm = "global";         // global, node, off (local statistics)
  uint64_t seed = 0;
  at::ScalarType dtype = at::kFloat;
};

// Weights are drawn from (seed, Purpose::init, parameter index), so they are the same on every rank.
// comm carries the batch-norm statistics; it must outlive the encoder.
std::shared_ptr<Encoder> make_encoder(const ModelSpec& spec, Comm& comm);

}  // namespace pal
