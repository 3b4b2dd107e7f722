// unit_rows: rows on the unit sphere, and gradients back through the normalization.
#pragma once

#include <ATen/core/Tensor.h>

namespace pal::loss {

struct UnitRows {
  at::Tensor rows;     // z_i / ‖z_i‖, of z's type; a row shorter than 1e-12 becomes 0
  at::Tensor inverse;  // (n, 1) 1 / ‖z_i‖, 0 for such a row
};

// Norms are fp64 sums. What is not finite stays so.
UnitRows unit_rows(const at::Tensor& z);
// The gradient in z of a loss whose gradient in the unit rows is d: (d_i − z̃_i (z̃_iᵀd_i)) / ‖z_i‖; 0 for a row of norm 0.
at::Tensor through_unit_rows(const UnitRows& unit, const at::Tensor& d);

}  // namespace pal::loss
