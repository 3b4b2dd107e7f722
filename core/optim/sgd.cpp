// sgd: g ← ∇ + λp, b ← μb + g, p ← p − lr·b, as PyTorch's SGD (λ = 0 for 1-D parameters).
#include "core/optim/rules.h"

namespace pal {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimSpec& spec, const NamedTensors& parameters)
      : spec_(spec), parameters_(parameters), buffers_(zeros_for("momentum", parameters)) {}

  void step(double lr) override {
    for (size_t k = 0; k < parameters_.size(); ++k) {
      const at::Tensor& parameter = parameters_[k].second;
      const at::Tensor grad = gradient_of(parameter);
      if (!grad.defined()) continue;
      AT_DISPATCH_FLOATING_TYPES(parameter.scalar_type(), "sgd", [&] {
        scalar_t* const p = parameter.data_ptr<scalar_t>();
        scalar_t* const b = buffers_[k].second.data_ptr<scalar_t>();
        const scalar_t* const g = grad.const_data_ptr<scalar_t>();
        const auto decay = static_cast<scalar_t>(decay_of(parameter) == Decay::full ? spec_.weight_decay : 0);
        const auto momentum = static_cast<scalar_t>(spec_.momentum), rate = static_cast<scalar_t>(lr);
        for_elements(parameter.numel(), [=](int64_t i) {
          b[i] = momentum * b[i] + (g[i] + decay * p[i]);
          p[i] -= rate * b[i];
        });
      });
    }
  }
  NamedTensors state() override { return buffers_; }

 private:
  const OptimSpec spec_;
  const NamedTensors parameters_, buffers_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const OptimSpec& spec, const NamedTensors& parameters) {
  return std::make_unique<Sgd>(spec, parameters);
}

}  // namespace pal
