// adamw: p ← (1 − lr·λ)p, m ← β₁m + (1−β₁)∇, v ← β₂v + (1−β₂)∇², p ← p − lr·m̂/(√v̂ + ε), m̂ and v̂ corrected for their
// start at 0; as PyTorch's AdamW (λ = 0 for 1-D parameters).
#include <ATen/ops/zeros.h>

#include <cmath>

#include "core/optim/rules.h"

namespace pal {
namespace {

class AdamW final : public Optimizer {
 public:
  AdamW(const OptimSpec& spec, const NamedTensors& parameters)
      : spec_(spec),
        parameters_(parameters),
        first_(zeros_for("first_moment", parameters)),
        second_(zeros_for("second_moment", parameters)),
        steps_(at::zeros({1}, at::kLong)) {}

  void step(double lr) override {
    const auto t = static_cast<double>(++*steps_.data_ptr<int64_t>());
    const double first_part = 1 - std::pow(spec_.beta1, t), second_part = 1 - std::pow(spec_.beta2, t);
    for (size_t k = 0; k < parameters_.size(); ++k) {
      const at::Tensor& parameter = parameters_[k].second;
      const at::Tensor grad = gradient_of(parameter);
      if (!grad.defined()) continue;
      AT_DISPATCH_FLOATING_TYPES(parameter.scalar_type(), "adamw", [&] {
        scalar_t* const p = parameter.data_ptr<scalar_t>();
        scalar_t* const m = first_[k].second.data_ptr<scalar_t>();
        scalar_t* const v = second_[k].second.data_ptr<scalar_t>();
        const scalar_t* const g = grad.const_data_ptr<scalar_t>();
        const auto number = [](double x) { return static_cast<scalar_t>(x); };
        const auto keep = number(1 - (decay_of(parameter) == Decay::full ? lr * spec_.weight_decay : 0));
        const auto beta1 = number(spec_.beta1), beta2 = number(spec_.beta2);
        const auto rest1 = number(1 - spec_.beta1), rest2 = number(1 - spec_.beta2);
        const auto rate = number(lr / first_part), root = number(1 / std::sqrt(second_part)), epsilon = number(spec_.epsilon);
        for_elements(parameter.numel(), [=](int64_t i) {
          m[i] = beta1 * m[i] + rest1 * g[i];
          v[i] = beta2 * v[i] + rest2 * g[i] * g[i];
          p[i] = keep * p[i] - rate * m[i] / (std::sqrt(v[i]) * root + epsilon);
        });
      });
    }
  }
  NamedTensors state() override {
    NamedTensors all = first_;
    all.insert(all.end(), second_.begin(), second_.end());
    all.emplace_back("steps", steps_);
    return all;
  }

 private:
  const OptimSpec spec_;
  const NamedTensors parameters_, first_, second_;
  const at::Tensor steps_;  // (1) int64
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const OptimSpec& spec, const NamedTensors& parameters) {
  return std::make_unique<AdamW>(spec, parameters);
}

}  // namespace pal
