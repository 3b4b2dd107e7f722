// lars: u ← ∇ + λp, u ← u·η‖p‖/‖u‖, b ← μb + u, p ← p − lr·b; 1-D parameters without decay and adaptation.
//
// Where a norm is 0 the factor is 1. Reference: You et al., "Large batch training of convolutional networks" (2017), in
// the form of the official VICReg code.
#include <cmath>

#include "core/optim/rules.h"

namespace pal {
namespace {

class Lars final : public Optimizer {
 public:
  Lars(const OptimSpec& spec, const NamedTensors& parameters)
      : spec_(spec), parameters_(parameters), buffers_(zeros_for("momentum", parameters)) {}

  void step(double lr) override {
    for (size_t k = 0; k < parameters_.size(); ++k) {
      const at::Tensor& parameter = parameters_[k].second;
      const at::Tensor grad = gradient_of(parameter);
      if (!grad.defined()) continue;
      AT_DISPATCH_FLOATING_TYPES(parameter.scalar_type(), "lars", [&] {
        update(parameter.data_ptr<scalar_t>(), buffers_[k].second.data_ptr<scalar_t>(), grad.const_data_ptr<scalar_t>(),
               parameter.numel(), decay_of(parameter), lr);
      });
    }
  }
  NamedTensors state() override { return buffers_; }

 private:
  template <class T>
  void update(T* p, T* b, const T* g, int64_t n, Decay kind, double lr) const {
    const T decay = static_cast<T>(kind == Decay::full ? spec_.weight_decay : 0);
    const T factor = static_cast<T>(kind == Decay::full ? adaptation(p, g, n, decay) : 1);
    const T momentum = static_cast<T>(spec_.momentum), rate = static_cast<T>(lr);
    for_elements(n, [=](int64_t i) {
      b[i] = momentum * b[i] + factor * (g[i] + decay * p[i]);
      p[i] -= rate * b[i];
    });
  }

  template <class T>
  double adaptation(const T* p, const T* g, int64_t n, T decay) const {
    const auto square = [](double v) { return v * v; };
    const double of_p = std::sqrt(sum_elements(n, [=](int64_t i) { return square(p[i]); }));
    const double of_u = std::sqrt(sum_elements(n, [=](int64_t i) { return square(g[i] + decay * p[i]); }));
    return of_p > 0 && of_u > 0 ? spec_.lars_eta * of_p / of_u : 1;
  }

  const OptimSpec spec_;
  const NamedTensors parameters_, buffers_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lars(const OptimSpec& spec, const NamedTensors& parameters) {
  return std::make_unique<Lars>(spec, parameters);
}

}  // namespace pal
