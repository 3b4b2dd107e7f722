#include <torch/nn/modules/container/modulelist.h>

#include "core/model/backbones.h"
#include "core/model/spec.h"

namespace pal::model {
namespace {

class ConvBlock final : public torch::nn::Module {
 public:
  ConvBlock(int64_t in, int64_t out, int64_t stride, const BatchNormOptions& options) {
    conv_ = register_module("conv", std::make_shared<Conv2d>(in, out, 3, stride, options.dtype));
    bn_ = register_module("bn", std::make_shared<BatchNorm>(out, options));
  }
  at::Tensor forward(const at::Tensor& x) { return bn_->forward(conv_->forward(x), Activation::relu); }

 private:
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<BatchNorm> bn_;
};

class ConvNet final : public Backbone {
 public:
  ConvNet(const std::vector<int64_t>& widths, int64_t channels, const BatchNormOptions& norm) : dims_(channels) {
    auto list = register_module("blocks", torch::nn::ModuleList());
    for (const int64_t width : widths) {
      blocks_.push_back(std::make_shared<ConvBlock>(dims_, width, blocks_.empty() ? 1 : 2, norm));
      list->push_back(blocks_.back());
      dims_ = width;
    }
  }
  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = images;
    for (const auto& block : blocks_) x = block->forward(x);
    return global_average(x);
  }
  int64_t dims() const override { return dims_; }

 private:
  int64_t dims_;
  std::vector<std::shared_ptr<ConvBlock>> blocks_;
};

}  // namespace

std::shared_ptr<Backbone> make_convnet(const std::vector<int64_t>& widths, int64_t channels,
                                       const BatchNormOptions& norm) {
  return std::make_shared<ConvNet>(widths, channels, norm);
}

std::shared_ptr<Backbone> convnet_backbone(const ModelSpec& spec, const BatchNormOptions& norm) {
  return make_convnet(spec.convnet_widths, spec.channels, norm);
}

}  // namespace pal::model
