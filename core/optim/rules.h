// rules: what the update rules share: their parameters, and loops over fixed tiles of one parameter.
#pragma once

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "core/optim/optimizer.h"

namespace pal {

std::unique_ptr<Optimizer> make_sgd(const OptimSpec& spec, const NamedTensors& parameters);
std::unique_ptr<Optimizer> make_lars(const OptimSpec& spec, const NamedTensors& parameters);
std::unique_ptr<Optimizer> make_adamw(const OptimSpec& spec, const NamedTensors& parameters);

enum class Decay { full, excluded };
// 1-D parameters (biases, batch norms) are left out of weight decay and of LARS's adaptation.
inline Decay decay_of(const at::Tensor& parameter) { return parameter.dim() <= 1 ? Decay::excluded : Decay::full; }

// Zeros in the parameter's own memory layout, named for the checkpoint: "<prefix>.<parameter>".
NamedTensors zeros_for(const std::string& prefix, const NamedTensors& parameters);

// The gradient, checked to lie in memory as the parameter does; undefined when there is none.
at::Tensor gradient_of(const at::Tensor& parameter);

inline constexpr int64_t kUpdateTile = 1 << 14;

// f(i) for the elements [0, n), by threads.
template <class F>
void for_elements(int64_t n, const F& f) {
  at::parallel_for(0, n, kUpdateTile, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

// Σ_i term(i) in fp64, over tiles of fixed size added in order: the same bits for any number of threads.
template <class F>
double sum_elements(int64_t n, const F& term) {
  constexpr int kLanes = 8;
  std::vector<double> parts((n + kUpdateTile - 1) / kUpdateTile);
  at::parallel_for(0, static_cast<int64_t>(parts.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      const int64_t begin = t * kUpdateTile, end = std::min(n, begin + kUpdateTile);
      double lanes[kLanes] = {};
      int64_t i = begin;
      for (; i + kLanes <= end; i += kLanes)
        for (int l = 0; l < kLanes; ++l) lanes[l] += term(i + l);
      for (; i < end; ++i) lanes[0] += term(i);
      for (int l = 1; l < kLanes; ++l) lanes[0] += lanes[l];
      parts[t] = lanes[0];
    }
  });
  double total = 0;
  for (const double part : parts) total += part;
  return total;
}

}  // namespace pal
