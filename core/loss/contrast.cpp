#include "core/loss/contrast.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/sum.h>

namespace pal::loss {
namespace {

constexpr double kShortestRow = 1e-12;  // as torch.nn.functional.normalize

}  // namespace

UnitRows unit_rows(const at::Tensor& z) {
  const at::Tensor norms = at::linalg_vector_norm(z, 2, at::IntArrayRef{1}, /*keepdim=*/true, at::kDouble);
  UnitRows unit;
  unit.inverse = norms.reciprocal().masked_fill_(norms < kShortestRow, 0).to(z.scalar_type());
  unit.rows = z * unit.inverse;
  return unit;
}

at::Tensor through_unit_rows(const UnitRows& unit, const at::Tensor& d) {
  const at::Tensor along = (unit.rows * d).sum(at::IntArrayRef{1}, /*keepdim=*/true, at::kDouble).to(d.scalar_type());
  return (d - unit.rows * along).mul_(unit.inverse);
}

}  // namespace pal::loss
