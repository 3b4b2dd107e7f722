// sgd: g ← ∇ + λp, b ← μb + g, p ← p − lr·b, as PyTorch's SGD (λ = 0 for 1-D parameters).
#include "core/ops/named_tensors.h"
#include "core/optim/rules.h"

namespace pal::optim {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimSpec& spec, const ops::NamedTensors& parameters)
      : spec_(spec),
        tiles_(parameters),
        buffers_(state_for("momentum", parameters)),
        device_(parameters, buffers_, {}) {}

  void step(double lr) override {
    const std::vector<at::Tensor> grads = tiles_.gradients();
    if (!tiles_.on_cpu()) {
      return device_.momentum(
          grads,
          {static_cast<float>(lr), static_cast<float>(spec_.momentum), static_cast<float>(spec_.weight_decay), 1}, 0);
    }
    tiles_.each(grads, [&](size_t, size_t k, int64_t begin, int64_t n) {
      const at::Tensor& p = tiles_.parameter(k);
      const double decay = decay_of(p) == Decay::full ? spec_.weight_decay : 0;
      AT_DISPATCH_FLOATING_TYPES(p.scalar_type(), "sgd", [&] {
        const auto number = [](double x) { return static_cast<scalar_t>(x); };
        update_loops<scalar_t>().momentum(at_tile<scalar_t>(p, begin), at_tile<scalar_t>(buffers_[k].second, begin),
                                          at_tile<scalar_t>(grads[k], begin),
                                          {number(lr), number(spec_.momentum), number(decay), scalar_t(1)}, n);
      });
    });
  }
  ops::NamedTensors state() override { return buffers_; }

 private:
  const OptimSpec spec_;
  const Tiles tiles_;
  const ops::NamedTensors buffers_;
  DeviceUpdate device_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const OptimSpec& spec, const ops::NamedTensors& parameters) {
  return std::make_unique<Sgd>(spec, parameters);
}

}  // namespace pal::optim
