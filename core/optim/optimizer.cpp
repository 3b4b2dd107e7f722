#include "core/optim/optimizer.h"

#include <algorithm>

#include "core/ops/named_tensors.h"
#include "core/optim/flat.h"
#include "core/optim/rules.h"
#include "kernels/base/error.h"

namespace pal::optim {

Tiles::Tiles(const ops::NamedTensors& parameters) : parameters_(parameters) {
  constexpr int64_t kTile = 1 << 14;
  for (size_t k = 0; k < parameters_.size(); ++k) {
    const int64_t n = parameter(k).numel();
    for (int64_t begin = 0; begin < n; begin += kTile) tiles_.push_back({k, begin, std::min(kTile, n - begin)});
  }
}

std::vector<at::Tensor> Tiles::gradients() const {
  std::vector<at::Tensor> all;
  for (const auto& [name, p] : parameters_) {
    const at::Tensor grad = p.grad();
    PAL_ASSERT(p.is_non_overlapping_and_dense() &&
                   (!grad.defined() || (grad.strides() == p.strides() && grad.scalar_type() == p.scalar_type())),
               "a gradient lies in memory as its parameter does");
    all.push_back(grad);
  }
  return all;
}

ops::NamedTensors state_for(const std::string& prefix, const ops::NamedTensors& parameters) {
  std::vector<at::Tensor> like;
  for (const auto& [name, p] : parameters) like.push_back(p.detach());
  const FlatViews zeros = flat_zeros(like);
  ops::NamedTensors state;
  for (size_t k = 0; k < parameters.size(); ++k) state.emplace_back(prefix + "." + parameters[k].first, zeros.views[k]);
  return state;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimSpec& spec, const ops::NamedTensors& parameters) {
  switch (spec.kind) {
#define PAL_OPTIMIZER(name, slots) \
  case OptimizerKind::name:        \
    return make_##name(spec, parameters);
#include "core/config/optimizers.def"
  }
  PAL_ASSERT(false, "an optimizer that is not in the table");
}

}  // namespace pal::optim
