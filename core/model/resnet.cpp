#include <ATen/ops/max_pool2d.h>
#include <torch/nn/modules/container/modulelist.h>

#include <array>

#include "core/model/backbones.h"
#include "kernels/base/error.h"

namespace pal::model {
namespace {

class Residual : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& x) = 0;
};

// The parts of both kinds of block.
class Block : public Residual {
 protected:
  explicit Block(const BatchNormOptions& norm) : norm_options_(norm) {}

  std::shared_ptr<Conv2d> conv(const std::string& name, int64_t in, int64_t out, int64_t kernel, int64_t stride) {
    return register_module(name, std::make_shared<Conv2d>(in, out, kernel, stride, norm_options_.dtype));
  }
  std::shared_ptr<BatchNorm> norm(const std::string& name, int64_t channels) {
    return register_module(name, std::make_shared<BatchNorm>(channels, norm_options_));
  }
  // Registered last, as in torchvision: the order of parameters is the order of their random streams.
  void shortcut(int64_t in, int64_t out, int64_t stride) {
    if (stride == 1 && in == out) return;
    auto list = register_module("downsample", torch::nn::ModuleList());
    down_conv_ = std::make_shared<Conv2d>(in, out, 1, stride, norm_options_.dtype);
    down_norm_ = std::make_shared<BatchNorm>(out, norm_options_);
    list->push_back(down_conv_);
    list->push_back(down_norm_);
  }
  at::Tensor skip(const at::Tensor& x) { return down_conv_ ? down_norm_->forward(down_conv_->forward(x)) : x; }

 private:
  const BatchNormOptions norm_options_;
  std::shared_ptr<Conv2d> down_conv_;
  std::shared_ptr<BatchNorm> down_norm_;
};

class BasicBlock final : public Block {
 public:
  static constexpr int64_t kExpansion = 1;
  BasicBlock(int64_t in, int64_t width, int64_t stride, const BatchNormOptions& options) : Block(options) {
    conv1_ = conv("conv1", in, width, 3, stride);
    bn1_ = norm("bn1", width);
    conv2_ = conv("conv2", width, width, 3, 1);
    bn2_ = norm("bn2", width);
    shortcut(in, width, stride);
  }
  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor h = bn1_->forward(conv1_->forward(x), Activation::relu);
    return bn2_->forward(conv2_->forward(h), Activation::relu, skip(x));
  }

 private:
  std::shared_ptr<Conv2d> conv1_, conv2_;
  std::shared_ptr<BatchNorm> bn1_, bn2_;
};

class Bottleneck final : public Block {
 public:
  static constexpr int64_t kExpansion = 4;
  Bottleneck(int64_t in, int64_t width, int64_t stride, const BatchNormOptions& options) : Block(options) {
    conv1_ = conv("conv1", in, width, 1, 1);
    bn1_ = norm("bn1", width);
    conv2_ = conv("conv2", width, width, 3, stride);
    bn2_ = norm("bn2", width);
    conv3_ = conv("conv3", width, kExpansion * width, 1, 1);
    bn3_ = norm("bn3", kExpansion * width);
    shortcut(in, kExpansion * width, stride);
  }
  at::Tensor forward(const at::Tensor& x) override {
    at::Tensor h = bn1_->forward(conv1_->forward(x), Activation::relu);
    h = bn2_->forward(conv2_->forward(h), Activation::relu);
    return bn3_->forward(conv3_->forward(h), Activation::relu, skip(x));
  }

 private:
  std::shared_ptr<Conv2d> conv1_, conv2_, conv3_;
  std::shared_ptr<BatchNorm> bn1_, bn2_, bn3_;
};

template <class BlockType>
class ResNet final : public Backbone {
 public:
  ResNet(const std::array<int, 4>& depths, Stem stem, int64_t channels, const BatchNormOptions& norm) : stem_(stem) {
    conv1_ = register_module("conv1", stem == Stem::cifar ? std::make_shared<Conv2d>(channels, 64, 3, 1, norm.dtype)
                                                          : std::make_shared<Conv2d>(channels, 64, 7, 2, norm.dtype));
    bn1_ = register_module("bn1", std::make_shared<BatchNorm>(64, norm));
    for (int stage = 0; stage < 4; ++stage) {
      auto list = register_module("layer" + std::to_string(stage + 1), torch::nn::ModuleList());
      for (int b = 0; b < depths[stage]; ++b) {
        const int64_t width = int64_t{64} << stage;
        auto block = std::make_shared<BlockType>(dims_, width, stage > 0 && b == 0 ? 2 : 1, norm);
        dims_ = width * BlockType::kExpansion;
        list->push_back(block);
        blocks_.push_back(block);
      }
    }
  }

  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = bn1_->forward(conv1_->forward(images), Activation::relu);
    if (stem_ == Stem::imagenet) x = at::max_pool2d(x, 3, 2, 1);
    for (const auto& block : blocks_) x = block->forward(x);
    return global_average(x);
  }
  int64_t dims() const override { return dims_; }

 private:
  const Stem stem_;
  int64_t dims_ = 64;
  std::shared_ptr<Conv2d> conv1_;
  std::shared_ptr<BatchNorm> bn1_;
  std::vector<std::shared_ptr<Residual>> blocks_;
};

}  // namespace

std::shared_ptr<Backbone> make_resnet(int depth, Stem stem, int64_t channels, const BatchNormOptions& norm) {
  switch (depth) {
    case 18:
      return std::make_shared<ResNet<BasicBlock>>(std::array{2, 2, 2, 2}, stem, channels, norm);
    case 34:
      return std::make_shared<ResNet<BasicBlock>>(std::array{3, 4, 6, 3}, stem, channels, norm);
    case 50:
      return std::make_shared<ResNet<Bottleneck>>(std::array{3, 4, 6, 3}, stem, channels, norm);
  }
  PAL_ASSERT(false, "a ResNet has depth 18, 34 or 50");
}

std::shared_ptr<Backbone> resnet18_backbone(const ModelSpec& spec, const BatchNormOptions& norm) {
  return make_resnet(18, spec.stem, spec.channels, norm);
}
std::shared_ptr<Backbone> resnet34_backbone(const ModelSpec& spec, const BatchNormOptions& norm) {
  return make_resnet(34, spec.stem, spec.channels, norm);
}
std::shared_ptr<Backbone> resnet50_backbone(const ModelSpec& spec, const BatchNormOptions& norm) {
  return make_resnet(50, spec.stem, spec.channels, norm);
}

}  // namespace pal::model
