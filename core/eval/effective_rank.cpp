#include "core/eval/effective_rank.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/square.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>

namespace pal {

double effective_rank(const at::Tensor& z) {
  const at::NoGradGuard no_grad;
  if (z.size(0) < 2) return 0;
  const at::Tensor centred = z.sub(z.mean(0, /*keepdim=*/true));
  const at::Tensor product = z.size(0) < z.size(1) ? centred.mm(centred.t()) : centred.t().mm(centred);
  const double trace = product.diagonal().to(at::kDouble).sum().item<double>();
  const double square = product.to(at::kDouble).square().sum().item<double>();
  return square > 0 ? trace * trace / square : 0;
}

}  // namespace pal
