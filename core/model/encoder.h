// encoder: backbone + projector (+ predictor) as one module, and the factory that builds it from the config.
//
// Parameter names are torchvision's (ViT: timm's) under "backbone.", and "projector.N.*", "predictor.N.*" for the
// heads, so that exported weights load in Python. Every batch norm is core/model/batch_norm.h.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>

#include "core/comm/comm.h"
#include "core/model/spec.h"

namespace pal::model {

class Encoder : public torch::nn::Module {
 public:
  // Features before the projector (rows, feature_dims()).
  virtual at::Tensor features(const at::Tensor& images) = 0;
  // Embedding (rows, embedding_dims()) = projector(features).
  virtual at::Tensor project(const at::Tensor& features) = 0;
  at::Tensor forward(const at::Tensor& images) { return project(features(images)); }
  // The input of core/loss/objective.h: the embedding, or with a predictor [embedding | prediction].
  virtual at::Tensor outputs(const at::Tensor& images) = 0;
  virtual int64_t feature_dims() const = 0;
  virtual int64_t embedding_dims() const = 0;
};

// Weights are drawn from (seed, Purpose::init, parameter index), so they are the same on every rank.
// comm reduces the batch-norm statistics; it must outlive the encoder.
std::shared_ptr<Encoder> make_encoder(const ModelSpec& spec, comm::Comm& comm);

}  // namespace pal::model
