// adamw: p ← (1 − lr·λ)p, m ← β₁m + (1−β₁)∇, v ← β₂v + (1−β₂)∇², p ← p − lr·m̂/(√v̂ + ε), m̂ and v̂ with bias
// correction, as PyTorch's AdamW (λ = 0 for 1-D parameters).
#include <ATen/ops/zeros.h>

#include <cmath>

#include "core/ops/named_tensors.h"
#include "core/optim/rules.h"

namespace pal::optim {
namespace {

class AdamW final : public Optimizer {
 public:
  AdamW(const OptimSpec& spec, const ops::NamedTensors& parameters)
      : spec_(spec),
        tiles_(parameters),
        first_(state_for("first_moment", parameters)),
        second_(state_for("second_moment", parameters)),
        steps_(at::zeros({1}, at::kLong)),
        device_(parameters, first_, second_) {}

  void step(double lr) override {
    const auto t = static_cast<double>(++*steps_.data_ptr<int64_t>());
    const std::vector<at::Tensor> grads = tiles_.gradients();
    if (!tiles_.on_cpu()) return device_.adam(grads, numbers<float>(lr, t, Decay::full));
    tiles_.each(grads, [&](size_t, size_t k, int64_t begin, int64_t n) {
      const at::Tensor& p = tiles_.parameter(k);
      AT_DISPATCH_FLOATING_TYPES(p.scalar_type(), "adamw", [&] {
        update_loops<scalar_t>().adam(at_tile<scalar_t>(p, begin), at_tile<scalar_t>(first_[k].second, begin),
                                      at_tile<scalar_t>(second_[k].second, begin), at_tile<scalar_t>(grads[k], begin),
                                      numbers<scalar_t>(lr, t, decay_of(p)), n);
      });
    });
  }
  ops::NamedTensors state() override {
    ops::NamedTensors all = first_;
    all.insert(all.end(), second_.begin(), second_.end());
    all.emplace_back("steps", steps_);
    return all;
  }

 private:
  template <class T>
  kernels::AdamNumbers<T> numbers(double lr, double t, Decay decay) const {
    const auto number = [](double x) { return static_cast<T>(x); };
    kernels::AdamNumbers<T> n;
    n.keep = number(1 - (decay == Decay::full ? lr * spec_.weight_decay : 0));
    n.beta1 = number(spec_.beta1);
    n.rest1 = number(1 - spec_.beta1);
    n.beta2 = number(spec_.beta2);
    n.rest2 = number(1 - spec_.beta2);
    n.rate = number(lr / (1 - std::pow(spec_.beta1, t)));
    n.root = number(1 / std::sqrt(1 - std::pow(spec_.beta2, t)));
    n.epsilon = number(spec_.epsilon);
    return n;
  }

  const OptimSpec spec_;
  const Tiles tiles_;
  const ops::NamedTensors first_, second_;
  const at::Tensor steps_;  // (1) int64, on the host
  DeviceUpdate device_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const OptimSpec& spec, const ops::NamedTensors& parameters) {
  return std::make_unique<AdamW>(spec, parameters);
}

}  // namespace pal::optim
