#include "core/model/encoder.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "core/model/backbones.h"
#include "core/model/batch_norm.h"
#include "core/model/layers.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::model {

// resnet18_backbone, vit_s_backbone, …: each in the file of that backbone.
#define PAL_BACKBONE(name, published) \
  std::shared_ptr<Backbone> name##_backbone(const ModelSpec& spec, const BatchNormOptions& norm);
#include "core/config/backbones.def"

namespace {

// Convolutions and batch norms are faster in this layout on the CPU (a fifth for ResNet-18, a quarter for the convnet).
// They detect it by the strides. Gray images have the same memory in both layouts, so their strides are set explicitly.
at::Tensor channels_last(const at::Tensor& images) {
  if (images.size(1) > 1) return images.contiguous(at::MemoryFormat::ChannelsLast);
  const int64_t height = images.size(2), width = images.size(3);
  return images.contiguous().as_strided(images.sizes(), {height * width, 1, width, 1});
}

class ProjectedEncoder final : public Encoder {
 public:
  ProjectedEncoder(std::shared_ptr<Backbone> backbone, const ModelSpec& spec, const BatchNormOptions& norm) {
    backbone_ = register_module("backbone", std::move(backbone));
    projector_ = register_module("projector", std::make_shared<Projector>(backbone_->dims(), spec.projector, norm));
    if (spec.predictor.empty()) return;
    PAL_CHECK(spec.predictor.back() == projector_->dims(), "the last width of model.predictor", spec.predictor.back(),
              "make it that of the embedding, " + std::to_string(projector_->dims()));
    predictor_ = register_module("predictor", std::make_shared<Projector>(projector_->dims(), spec.predictor, norm));
  }
  at::Tensor features(const at::Tensor& images) override {
    PAL_ASSERT(images.dim() == 4, "images are (n, channels, height, width)");
    return backbone_->forward(channels_last(images));
  }
  at::Tensor project(const at::Tensor& features) override { return projector_->forward(features); }
  at::Tensor outputs(const at::Tensor& images) override {
    const at::Tensor z = forward(images);
    return predictor_ ? at::cat({z, predictor_->forward(z)}, 1) : z;
  }
  int64_t feature_dims() const override { return backbone_->dims(); }
  int64_t embedding_dims() const override { return projector_->dims(); }

 private:
  std::shared_ptr<Backbone> backbone_;
  std::shared_ptr<Projector> projector_;
  std::shared_ptr<Projector> predictor_;  // null without a predictor
};

// Standard normals in pairs (Box-Muller); each pair takes two words of the stream.
template <class T>
void draw_normal(T* w, int64_t n, double scale, Random random) {
  for (int64_t i = 0; i < n; i += 2) {
    const double u = (random.next_u32() + 0.5) * 0x1p-32;
    const double angle = 6.283185307179586476925 * 0x1p-32 * random.next_u32();
    const double radius = scale * std::sqrt(-2 * std::log(u));
    w[i] = static_cast<T>(radius * std::cos(angle));
    if (i + 1 < n) w[i + 1] = static_cast<T>(radius * std::sin(angle));
  }
}

template <class T>
void draw_uniform(T* w, int64_t n, double bound, Random random) {
  for (int64_t i = 0; i < n; ++i) w[i] = static_cast<T>(bound * ((random.next_u32() + 0.5) * 0x1p-31 - 1));
}

// As torchvision draws convolutions (normal, variance 2 / fan out) and PyTorch linear layers (uniform, bound fan in^-½);
// a transformer's weights, tokens and positions as timm does (normal, deviation 0.02).
// In double and rounded, so that float32 and float64 runs begin with the same weights.
constexpr double kTransformerDeviation = 0.02;

template <class T>
void draw_weight(at::Tensor weight, InitRule rule, uint64_t seed, uint64_t parameter) {
  constexpr int64_t kStream = 4096;  // elements per stream, so that threads share the work and change nothing
  const int64_t n = weight.numel();
  const at::Tensor drawn = at::empty(weight.sizes(), weight.scalar_type());  // in the order of the indices
  T* const w = drawn.data_ptr<T>();
  at::parallel_for(0, (n + kStream - 1) / kStream, 4, [&](int64_t first, int64_t last) {
    for (int64_t s = first; s < last; ++s) {
      const int64_t begin = s * kStream, size = std::min(kStream, n - begin);
      const Random random(seed, Purpose::init, parameter, static_cast<uint64_t>(s));
      if (rule == InitRule::transformer)
        draw_normal(w + begin, size, kTransformerDeviation, random);
      else if (weight.dim() == 4)
        draw_normal(w + begin, size, std::sqrt(2.0 / static_cast<double>(n / weight.size(1))), random);
      else
        draw_uniform(w + begin, size, 1 / std::sqrt(static_cast<double>(weight.size(1))), random);
    }
  });
  weight.copy_(drawn);
}

void draw_weights(torch::nn::Module& module, InitRule backbone, uint64_t seed) {
  const at::NoGradGuard no_grad;
  uint64_t parameter = 0;
  for (const auto& named : module.named_parameters()) {
    const at::Tensor& weight = named.value();
    const InitRule rule = named.key().starts_with("backbone.") ? backbone : InitRule::convolutional;
    if (weight.dim() > 1) {  // norms begin with one and zero
      AT_DISPATCH_FLOATING_TYPES(weight.scalar_type(), "draw_weight",
                                 [&] { draw_weight<scalar_t>(weight, rule, seed, parameter); });
    }
    ++parameter;
  }
}

std::shared_ptr<Backbone> make_backbone(const ModelSpec& spec, const BatchNormOptions& norm) {
  switch (spec.backbone) {
#define PAL_BACKBONE(name, published) \
  case BackboneKind::name:            \
    return name##_backbone(spec, norm);
#include "core/config/backbones.def"
  }
  PAL_ASSERT(false, "a backbone that is not in the table");
}

void check_widths(const std::string& key, const std::vector<int64_t>& widths) {
  for (const int64_t width : widths) {
    PAL_CHECK(width > 0 && width <= 1 << 20, "a width of " + key + " is out of range", width,
              "give widths from 1 to 1048576");
  }
}

}  // namespace

std::shared_ptr<Encoder> make_encoder(const ModelSpec& spec, comm::Comm& comm) {
  PAL_CHECK(spec.dtype == at::kFloat || spec.dtype == at::kDouble, "unknown type of the weights", spec.dtype,
            "choose float32 or float64");
  PAL_CHECK(spec.backbone != BackboneKind::convnet || !spec.convnet_widths.empty(), "model.widths is empty", "",
            "give at least one width");
  check_widths("model.widths", spec.convnet_widths);
  check_widths("model.projector", spec.projector);
  check_widths("model.predictor", spec.predictor);
  BatchNormOptions norm;
  norm.comm = spec.batch_norm == BatchNormScope::off ? nullptr : &comm;
  norm.dtype = spec.dtype;
  const std::shared_ptr<Backbone> backbone = make_backbone(spec, norm);
  auto encoder = std::make_shared<ProjectedEncoder>(backbone, spec, norm);
  draw_weights(*encoder, backbone->init_rule(), spec.seed);
  return encoder;
}

}  // namespace pal::model
