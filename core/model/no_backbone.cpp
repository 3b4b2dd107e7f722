// no_backbone: model.backbone=none: features that another program made are the backbone's output.
#include "core/model/batch_norm.h"
#include "core/model/layers.h"
#include "core/model/spec.h"
#include "kernels/base/error.h"

namespace pal::model {
namespace {

class NoBackbone final : public Backbone {
 public:
  explicit NoBackbone(int64_t dims) : dims_(dims) {}
  at::Tensor forward(const at::Tensor& rows) override {
    const at::Tensor flat = rows.flatten(1);
    PAL_DATA_CHECK(flat.size(1) == dims_, "features of another width", flat.size(1),
                   "the training set has " + std::to_string(dims_));
    return flat;
  }
  int64_t dims() const override { return dims_; }

 private:
  int64_t dims_;
};

}  // namespace

std::shared_ptr<Backbone> none_backbone(const ModelSpec& spec, const BatchNormOptions&) {
  return std::make_shared<NoBackbone>(spec.channels);
}

}  // namespace pal::model
