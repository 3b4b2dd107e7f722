#include <string>

#include "core/model/backbones.h"

namespace pal::model {

Projector::Projector(int64_t in, const std::vector<int64_t>& widths, const BatchNormOptions& norm) : dims_(in) {
  for (size_t k = 0; k < widths.size(); ++k) {
    linears_.push_back(register_module(std::to_string(3 * k), std::make_shared<Linear>(dims_, widths[k], norm.dtype)));
    dims_ = widths[k];
    if (k + 1 < widths.size())
      norms_.push_back(register_module(std::to_string(3 * k + 1), std::make_shared<BatchNorm>(dims_, norm)));
  }
}

at::Tensor Projector::forward(const at::Tensor& features) {
  at::Tensor z = features;
  for (size_t k = 0; k < linears_.size(); ++k) {
    z = linears_[k]->forward(z);
    if (k < norms_.size()) z = norms_[k]->forward(z, Activation::relu);
  }
  return z;
}

}  // namespace pal::model
