// projector: the head: Linear – batch norm – ReLU for every width but the last, which is a Linear alone; no biases.
//
// Parameters are named as in a Sequential of those modules ("0.weight", "1.weight", "1.bias", …, "3.weight", …), as the
// official VICReg code has them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/model/batch_norm.h"
#include "core/model/layers.h"

namespace pal::model {

class Projector : public torch::nn::Module {
 public:
  // widths empty: the identity.
  Projector(int64_t in, const std::vector<int64_t>& widths, const BatchNormOptions& norm);
  at::Tensor forward(const at::Tensor& features);  // (rows, in) → (rows, dims())
  int64_t dims() const { return dims_; }

 private:
  int64_t dims_;
  std::vector<std::shared_ptr<Linear>> linears_;
  std::vector<std::shared_ptr<BatchNorm>> norms_;  // one fewer
};

}  // namespace pal::model
