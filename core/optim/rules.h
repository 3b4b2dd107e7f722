// rules: what the update rules share: state in flat buffers, and one parallel pass over the tiles of all parameters.
#pragma once

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/named_tensors.h"
#include "core/optim/device_update.h"
#include "core/optim/optimizer.h"
#include "kernels/update.h"

namespace pal::optim {

// make_sgd, make_lars, …: each in the file of that optimizer.
#define PAL_OPTIMIZER(name, slots) \
  std::unique_ptr<Optimizer> make_##name(const OptimSpec& spec, const ops::NamedTensors& parameters);
#include "core/config/optimizers.def"

enum class Decay { full, excluded };
// 1-D parameters (biases, batch norms) are left out of weight decay and of LARS's adaptation.
inline Decay decay_of(const at::Tensor& parameter) { return parameter.dim() <= 1 ? Decay::excluded : Decay::full; }

// The parameters cut into tiles of fixed size: whoever runs a tile, sums over a parameter's tiles in order are the same.
class Tiles {
 public:
  explicit Tiles(const ops::NamedTensors& parameters);

  // Gradients by parameter, checked to lie in memory as the parameter does; undefined where there is none.
  std::vector<at::Tensor> gradients() const;

  // f(tile, k, begin, n) for the tiles of each parameter k that has a gradient, all in one parallel region.
  template <class F>
  void each(const std::vector<at::Tensor>& gradients, const F& f) const {
    at::parallel_for(0, static_cast<int64_t>(tiles_.size()), 1, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) {
        const Tile& tile = tiles_[t];
        if (gradients[tile.parameter].defined()) f(t, tile.parameter, tile.begin, tile.size);
      }
    });
  }
  size_t size() const { return tiles_.size(); }
  bool on_cpu() const { return parameters_.empty() || parameters_[0].second.is_cpu(); }  // elsewhere: DeviceUpdate
  size_t parameter_of(size_t tile) const { return tiles_[tile].parameter; }
  const at::Tensor& parameter(size_t k) const { return parameters_[k].second; }

 private:
  struct Tile {
    size_t parameter;
    int64_t begin, size;
  };
  const ops::NamedTensors parameters_;
  std::vector<Tile> tiles_;
};

// Zeros in the parameters' own memory layouts, views of one buffer, named for the checkpoint: "<prefix>.<parameter>".
ops::NamedTensors state_for(const std::string& prefix, const ops::NamedTensors& parameters);

// The tile's first element.
template <class T>
T* at_tile(const at::Tensor& t, int64_t begin) {
  return t.data_ptr<T>() + begin;
}
template <class T>
const kernels::UpdateOps<T>& update_loops() {
  return kernels::update_ops<T>(kernels::best_isa());
}

}  // namespace pal::optim
