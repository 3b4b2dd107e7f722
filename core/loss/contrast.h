// contrast: shared by the losses on the unit sphere: normalized rows, and options and terms of a softmax over rows.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/loss/criterion.h"
#include "kernels/base/error.h"

namespace pal::loss {

struct UnitRows {
  at::Tensor rows;     // z_i / ‖z_i‖, of z's type; a row shorter than 1e-12 becomes 0
  at::Tensor inverse;  // (n, 1) 1 / ‖z_i‖, 0 for such a row
};

// Norms are summed in fp64. Rows that are not finite stay so.
UnitRows unit_rows(const at::Tensor& z);
// Backward of unit_rows: (d_i − z̃_i (z̃_iᵀd_i)) / ‖z_i‖ for the gradient d in the unit rows; 0 for a row of norm 0.
at::Tensor through_unit_rows(const UnitRows& unit, const at::Tensor& d);

struct ContrastOptions {
  double temperature = 0.1;
  Reduction reduction = Reduction::mean;
};

inline void check_contrast(const ContrastOptions& options) {
  PAL_CHECK(options.temperature > 0, "loss.temperature", options.temperature, "give a number above 0");
}

// Terms: alignment (positive pairs) and contrast (denominators).
inline LossResult contrast_result(const at::Tensor& dz, double alignment, double contrast) {
  return result_of({{"alignment", alignment}, {"contrast", contrast}}, dz);
}

}  // namespace pal::loss
