// contrast: what the losses with a softmax over rows share: their options, and their two terms.
#pragma once

#include "core/loss/criterion.h"
#include "kernels/base/error.h"

namespace pal::loss {

struct ContrastOptions {
  double temperature = 0.1;
  Reduction reduction = Reduction::mean;
};

inline void check_contrast(const ContrastOptions& options) {
  PAL_CHECK(options.temperature > 0, "loss.temperature", options.temperature, "give a number above 0");
}

// alignment: of the positive pairs; contrast: of the denominators.
inline LossResult contrast_result(const at::Tensor& dz, double alignment, double contrast) {
  return result_of({{"alignment", alignment}, {"contrast", contrast}}, dz);
}

}  // namespace pal::loss
