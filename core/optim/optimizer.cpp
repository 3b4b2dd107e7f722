#include "core/optim/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include "core/optim/rules.h"
#include "kernels/base/error.h"

namespace pal {

NamedTensors zeros_for(const std::string& prefix, const NamedTensors& parameters) {
  const at::NoGradGuard no_grad;
  NamedTensors zeros;
  for (const auto& [name, p] : parameters) zeros.emplace_back(prefix + "." + name, at::zeros_like(p.detach()));
  return zeros;
}

at::Tensor gradient_of(const at::Tensor& parameter) {
  const at::Tensor grad = parameter.grad();
  PAL_ASSERT(parameter.is_non_overlapping_and_dense() &&
                 (!grad.defined() || (grad.strides() == parameter.strides() && grad.scalar_type() == parameter.scalar_type())),
             "a gradient lies in memory as its parameter does");
  return grad;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimSpec& spec, const NamedTensors& parameters) {
  if (spec.kind == "sgd") return make_sgd(spec, parameters);
  if (spec.kind == "lars") return make_lars(spec, parameters);
  PAL_CHECK(spec.kind == "adamw", "unknown optim.kind", spec.kind, "choose sgd, lars or adamw");
  return make_adamw(spec, parameters);
}

}  // namespace pal
