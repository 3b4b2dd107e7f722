// rules: shared by the update rules: state in flat buffers, one parallel pass over tiles, and the update on CUDA.
#pragma once

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/named_tensors.h"
#include "core/optim/optimizer.h"
#include "kernels/update.h"

namespace pal::optim {

// make_sgd, make_lars, …: each in the file of that optimizer.
#define PAL_OPTIMIZER(name, slots) \
  std::unique_ptr<Optimizer> make_##name(const OptimSpec& spec, const ops::NamedTensors& parameters);
#include "core/config/optimizers.def"

enum class Decay { full, excluded };
// 1-D parameters (biases, batch norms) have no weight decay and no LARS adaptation.
inline Decay decay_of(const at::Tensor& parameter) { return parameter.dim() <= 1 ? Decay::excluded : Decay::full; }

// The parameters cut into tiles of fixed size, so that sums in tile order do not depend on the number of threads.
class Tiles {
 public:
  explicit Tiles(const ops::NamedTensors& parameters);

  // Gradients by parameter, checked to have the parameter's memory layout; undefined for a parameter without one.
  std::vector<at::Tensor> gradients() const;

  // Calls f(tile, k, begin, n) for the tiles of each parameter k with a gradient, in one parallel region.
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
  bool on_cpu() const { return parameters_.empty() || parameters_[0].second.is_cpu(); }  // else DeviceUpdate runs
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

// Zeros in the parameters' memory layouts, views of one buffer, named "<prefix>.<parameter>" for the checkpoint.
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

// device_update: the update rules on CUDA: one launch for all parameters, over a table of runs on the device.
//
// The table is uploaded when a gradient pointer changes: once, if gradients are views of buckets. On meta nothing runs.
class DeviceUpdate {
 public:
  // first and second: the state by parameter; second may be empty.
  DeviceUpdate(const ops::NamedTensors& parameters, const ops::NamedTensors& first, const ops::NamedTensors& second);

  // Gradients by parameter; a parameter with an undefined gradient is not updated. eta 0: no LARS adaptation.
  void momentum(const std::vector<at::Tensor>& gradients, const kernels::MomentumNumbers<float>& numbers, double eta);
  void adam(const std::vector<at::Tensor>& gradients, const kernels::AdamNumbers<float>& numbers);

 private:
  bool prepare(const std::vector<at::Tensor>& gradients);  // false on meta
  kernels::Span<const kernels::UpdateRun> runs() const;

  const ops::NamedTensors parameters_, first_, second_;
  std::vector<const void*> pointers_;  // of the gradients in the table
  int64_t count_ = 0;                  // runs
  at::Tensor table_, begin_,
      factors_;  // on the device: bytes of UpdateRun; (parameters + 1) int64; (parameters) float32
};

}  // namespace pal::optim
