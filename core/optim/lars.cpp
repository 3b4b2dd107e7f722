// lars: u ← ∇ + λp, u ← u·η‖p‖/‖u‖, b ← μb + u, p ← p − lr·b; 1-D parameters without decay and adaptation.
//
// A norm of 0 gives the factor 1.
// Reference: You et al., "Large batch training of convolutional networks" (2017), in
// the form of the official VICReg code.
#include <cmath>

#include "core/ops/named_tensors.h"
#include "core/optim/rules.h"

namespace pal::optim {
namespace {

class Lars final : public Optimizer {
 public:
  Lars(const OptimSpec& spec, const ops::NamedTensors& parameters)
      : spec_(spec),
        tiles_(parameters),
        buffers_(state_for("momentum", parameters)),
        parameters_(parameters.size()),
        device_(parameters, buffers_, {}) {}

  void step(double lr) override {
    const std::vector<at::Tensor> grads = tiles_.gradients();
    if (!tiles_.on_cpu()) {
      return device_.momentum(
          grads,
          {static_cast<float>(lr), static_cast<float>(spec_.momentum), static_cast<float>(spec_.weight_decay), 1},
          spec_.lars_eta);
    }
    const std::vector<double> factors = adaptation(grads);
    tiles_.each(grads, [&](size_t, size_t k, int64_t begin, int64_t n) {
      const at::Tensor& p = tiles_.parameter(k);
      AT_DISPATCH_FLOATING_TYPES(p.scalar_type(), "lars", [&] {
        const auto number = [](double x) { return static_cast<scalar_t>(x); };
        update_loops<scalar_t>().momentum(at_tile<scalar_t>(p, begin), at_tile<scalar_t>(buffers_[k].second, begin),
                                          at_tile<scalar_t>(grads[k], begin),
                                          {number(lr), number(spec_.momentum), number(decay(k)), number(factors[k])},
                                          n);
      });
    });
  }
  ops::NamedTensors state() override { return buffers_; }

 private:
  double decay(size_t k) const { return decay_of(tiles_.parameter(k)) == Decay::full ? spec_.weight_decay : 0; }

  // η‖p‖/‖u‖ of each parameter; squares are summed in fp64 in the order of the tiles.
  std::vector<double> adaptation(const std::vector<at::Tensor>& grads) const {
    struct Squares {
      double of_p = 0, of_update = 0;
    };
    std::vector<Squares> parts(tiles_.size()), whole(parameters_);
    tiles_.each(grads, [&](size_t tile, size_t k, int64_t begin, int64_t n) {
      const at::Tensor& p = tiles_.parameter(k);
      if (decay_of(p) == Decay::excluded) return;
      AT_DISPATCH_FLOATING_TYPES(p.scalar_type(), "lars_squares", [&] {
        update_loops<scalar_t>().squares(&parts[tile].of_p, &parts[tile].of_update, at_tile<scalar_t>(p, begin),
                                         at_tile<scalar_t>(grads[k], begin), static_cast<scalar_t>(decay(k)), n);
      });
    });
    for (size_t t = 0; t < parts.size(); ++t) {
      whole[tiles_.parameter_of(t)].of_p += parts[t].of_p;
      whole[tiles_.parameter_of(t)].of_update += parts[t].of_update;
    }
    std::vector<double> factors;
    for (const Squares& s : whole) {
      factors.push_back(s.of_p > 0 && s.of_update > 0 ? spec_.lars_eta * std::sqrt(s.of_p) / std::sqrt(s.of_update)
                                                      : 1);
    }
    return factors;
  }

  const OptimSpec spec_;
  const Tiles tiles_;
  const ops::NamedTensors buffers_;
  const size_t parameters_;
  DeviceUpdate device_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lars(const OptimSpec& spec, const ops::NamedTensors& parameters) {
  return std::make_unique<Lars>(spec, parameters);
}

}  // namespace pal::optim
