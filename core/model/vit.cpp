#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/container/modulelist.h>

#include <cmath>
#include <vector>

#include "core/model/backbones.h"
#include "core/model/batch_norm.h"
#include "core/model/spec.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal::model {
namespace {

constexpr double kNormEpsilon = 1e-6;  // timm's

class Affine final : public torch::nn::Module {  // a linear layer with a bias
 public:
  Affine(int64_t in, int64_t out, at::ScalarType dtype) {
    weight = register_parameter("weight", at::empty({out, in}, dtype));
    bias = register_parameter("bias", at::zeros({out}, dtype));
  }
  at::Tensor forward(const at::Tensor& x) const { return at::linear(x, weight, bias); }
  at::Tensor weight, bias;
};

class LayerNorm final : public torch::nn::Module {
 public:
  LayerNorm(int64_t width, at::ScalarType dtype) : width_(width) {
    weight = register_parameter("weight", at::ones({width}, dtype));
    bias = register_parameter("bias", at::zeros({width}, dtype));
  }
  at::Tensor forward(const at::Tensor& x) const { return at::layer_norm(x, {width_}, weight, bias, kNormEpsilon); }
  at::Tensor weight, bias;

 private:
  const int64_t width_;
};

class PatchEmbedding final : public torch::nn::Module {
 public:
  explicit PatchEmbedding(const ViTSpec& spec) : patch_(spec.patch) {
    auto proj = register_module("proj", std::make_shared<torch::nn::Module>());
    weight_ =
        proj->register_parameter("weight", at::empty({spec.width, spec.channels, spec.patch, spec.patch}, spec.dtype));
    bias_ = proj->register_parameter("bias", at::zeros({spec.width}, spec.dtype));
  }
  at::Tensor forward(const at::Tensor& x) const {  // (n, C, h, w) → (n, patches, D)
    PAL_CHECK(
        x.size(2) % patch_ == 0 && x.size(3) % patch_ == 0,
        "a ViT needs images whose sides are multiples of model.patch=" + std::to_string(patch_) + ", but they have",
        std::to_string(x.size(2)) + " x " + std::to_string(x.size(3)) + " pixels",
        "set data.size (and augment.small_size) to a multiple, or another model.patch");
    const bool gray = x.size(1) == 1 && weight_.size(1) > 1;  // one channel for equal ones, as in layers.h
    return at::conv2d(x, gray ? weight_.sum(1, true) : weight_, bias_, patch_).flatten(2).transpose(1, 2);
  }

 private:
  const int64_t patch_;
  at::Tensor weight_, bias_;
};

class Attention final : public torch::nn::Module {
 public:
  explicit Attention(const ViTSpec& spec) : heads_(spec.heads) {
    qkv_ = register_module("qkv", std::make_shared<Affine>(spec.width, 3 * spec.width, spec.dtype));
    proj_ = register_module("proj", std::make_shared<Affine>(spec.width, spec.width, spec.dtype));
  }
  at::Tensor forward(const at::Tensor& x) const {  // (n, T, D)
    const int64_t n = x.size(0), tokens = x.size(1), width = x.size(2);
    const auto parts = qkv_->forward(x).view({n, tokens, 3, heads_, width / heads_}).permute({2, 0, 3, 1, 4}).unbind(0);
    const at::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
    return proj_->forward(mixed.transpose(1, 2).reshape({n, tokens, width}));
  }

 private:
  const int64_t heads_;
  std::shared_ptr<Affine> qkv_, proj_;
};

class Mlp final : public torch::nn::Module {
 public:
  explicit Mlp(const ViTSpec& spec) {
    fc1_ = register_module("fc1", std::make_shared<Affine>(spec.width, 4 * spec.width, spec.dtype));
    fc2_ = register_module("fc2", std::make_shared<Affine>(4 * spec.width, spec.width, spec.dtype));
  }
  at::Tensor forward(const at::Tensor& x) const { return fc2_->forward(at::gelu(fc1_->forward(x))); }

 private:
  std::shared_ptr<Affine> fc1_, fc2_;
};

class TransformerBlock final : public torch::nn::Module {
 public:
  explicit TransformerBlock(const ViTSpec& spec) {
    norm1_ = register_module("norm1", std::make_shared<LayerNorm>(spec.width, spec.dtype));
    attn_ = register_module("attn", std::make_shared<Attention>(spec));
    norm2_ = register_module("norm2", std::make_shared<LayerNorm>(spec.width, spec.dtype));
    mlp_ = register_module("mlp", std::make_shared<Mlp>(spec));
  }
  // keep (2, n, 1, 1): the factors of the two branches per row; undefined means 1.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& keep) const {
    const auto add = [&](const at::Tensor& to, const at::Tensor& branch, int64_t k) {
      return keep.defined() ? to + branch * keep[k] : to + branch;
    };
    const at::Tensor h = add(x, attn_->forward(norm1_->forward(x)), 0);
    return add(h, mlp_->forward(norm2_->forward(h)), 1);
  }

 private:
  std::shared_ptr<LayerNorm> norm1_, norm2_;
  std::shared_ptr<Attention> attn_;
  std::shared_ptr<Mlp> mlp_;
};

// (n) a hash below 2^48 of all pixels of each row, the same in float32 and float64.
std::vector<uint64_t> row_keys(const at::Tensor& images) {
  const at::NoGradGuard no_grad;
  const at::Tensor bits = images.to(at::kFloat).contiguous().flatten(1).view(at::kInt).to(at::kLong);
  // Odd multipliers of a golden-ratio sequence. The int64 sum wraps around in LibTorch.
  const at::Tensor factor = at::arange(1, 2 * bits.size(1), 2, bits.options()).mul_(INT64_C(0x1E3779B97F4A7C15));
  const at::Tensor sums = bits.mul(factor).sum(1).cpu();
  std::vector<uint64_t> keys;
  for (int64_t i = 0; i < sums.size(0); ++i) {
    auto k = static_cast<uint64_t>(sums.data_ptr<int64_t>()[i]);
    k = (k ^ (k >> 32)) * 0xD6E8FEB86659FD93ull;  // mixes the high bits down
    keys.push_back((k ^ (k >> 32)) & 0xFFFFFFFFFFFFull);
  }
  return keys;
}

class ViT final : public Backbone {
 public:
  explicit ViT(const ViTSpec& spec) : spec_(spec) {
    const int64_t side = spec.image / spec.patch;
    cls_token_ = register_parameter("cls_token", at::empty({1, 1, spec.width}, spec.dtype));
    pos_embed_ = register_parameter("pos_embed", at::empty({1, 1 + side * side, spec.width}, spec.dtype));
    patch_embed_ = register_module("patch_embed", std::make_shared<PatchEmbedding>(spec));
    auto list = register_module("blocks", torch::nn::ModuleList());
    for (int64_t l = 0; l < spec.depth; ++l) {
      blocks_.push_back(std::make_shared<TransformerBlock>(spec));
      list->push_back(blocks_.back());
    }
    norm_ = register_module("norm", std::make_shared<LayerNorm>(spec.width, spec.dtype));
  }

  at::Tensor forward(const at::Tensor& images) override {
    const int64_t rows = images.size(2) / spec_.patch, cols = images.size(3) / spec_.patch;
    at::Tensor x = patch_embed_->forward(images);
    x = at::cat({cls_token_.expand({images.size(0), -1, -1}), x}, 1) + resample_positions(pos_embed_, rows, cols);
    const bool drops = is_training() && spec_.drop_path > 0;
    const std::vector<uint64_t> keys = drops ? row_keys(images) : std::vector<uint64_t>{};
    for (size_t l = 0; l < blocks_.size(); ++l)
      x = blocks_[l]->forward(x, drops ? kept(keys, static_cast<int64_t>(l), x) : at::Tensor());
    return norm_->forward(x.select(1, 0));
  }
  int64_t dims() const override { return spec_.width; }
  InitRule init_rule() const override { return InitRule::transformer; }

 private:
  at::Tensor kept(const std::vector<uint64_t>& keys, int64_t block, const at::Tensor& like) const {
    const double rate =
        spec_.drop_path * static_cast<double>(block) / static_cast<double>(std::max<int64_t>(spec_.depth - 1, 1));
    const auto n = static_cast<int64_t>(keys.size());
    at::Tensor keep = at::empty({2, n, 1, 1}, at::kDouble);
    double* k = keep.data_ptr<double>();
    for (int64_t branch = 0; branch < 2; ++branch) {
      for (int64_t row = 0; row < n; ++row) {
        Random random(spec_.seed, Purpose::dropout, static_cast<uint64_t>(2 * block + branch),
                      keys[static_cast<size_t>(row)]);
        k[branch * n + row] = random.next_double() < rate ? 0 : 1 / (1 - rate);
      }
    }
    return keep.to(like.options());
  }

  const ViTSpec spec_;
  at::Tensor cls_token_, pos_embed_;
  std::shared_ptr<PatchEmbedding> patch_embed_;
  std::vector<std::shared_ptr<TransformerBlock>> blocks_;
  std::shared_ptr<LayerNorm> norm_;
};

ViTSpec vit_spec(const ModelSpec& spec, int64_t width, int64_t heads) {
  ViTSpec vit;
  vit.width = width;
  vit.heads = heads;
  vit.patch = spec.patch;
  vit.image = spec.image;
  vit.channels = spec.channels;
  vit.drop_path = spec.drop_path;
  vit.seed = spec.seed;
  vit.dtype = spec.dtype;
  return vit;
}

}  // namespace

at::Tensor resample_positions(const at::Tensor& positions, int64_t rows, int64_t cols) {
  const int64_t grid = positions.size(1) - 1, width = positions.size(2);
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(grid))));
  if (side * side == grid && rows == side && cols == side) return positions;
  PAL_DATA_CHECK(side * side == grid, "positions of a grid that is no square", grid,
                 "take weights trained on square images");
  const at::Tensor plane =
      positions.narrow(1, 1, grid).reshape({1, side, side, width}).permute({0, 3, 1, 2}).contiguous();
  const at::Tensor other = at::_upsample_bicubic2d_aa(plane, {rows, cols}, /*align_corners=*/false);
  return at::cat({positions.narrow(1, 0, 1), other.permute({0, 2, 3, 1}).reshape({1, rows * cols, width})}, 1);
}

std::shared_ptr<Backbone> make_vit(const ViTSpec& spec) {
  PAL_CHECK(spec.image > 0, "a ViT must know the size of its images, but data.size is", spec.image,
            "set data.size, for instance data.size=224");
  PAL_CHECK(spec.image % spec.patch == 0, "data.size is no multiple of model.patch=" + std::to_string(spec.patch),
            spec.image, "set one of them so that it divides");
  return std::make_shared<ViT>(spec);
}

std::shared_ptr<Backbone> vit_s_backbone(const ModelSpec& spec, const BatchNormOptions&) {
  return make_vit(vit_spec(spec, 384, 6));
}
std::shared_ptr<Backbone> vit_b_backbone(const ModelSpec& spec, const BatchNormOptions&) {
  return make_vit(vit_spec(spec, 768, 12));
}

}  // namespace pal::model
