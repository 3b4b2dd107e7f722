#include "core/model/batch_norm.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/base/error.h"

namespace pal {
namespace {

using kernels::ChannelGrid;
using kernels::Scratch;
using kernels::Span;

// Above this mean²/var, Σx² − (Σx)²/n has lost too many digits and the squares are summed again around the mean.
constexpr double kCancellation = 100;

kernels::Cpu cpu() { return {at::get_num_threads()}; }

at::MemoryFormat format_of(const at::Tensor& x) {
  return x.dim() == 4 ? x.suggest_memory_format() : at::MemoryFormat::Contiguous;
}

// x is dense in format_of(x).
ChannelGrid grid_of(const at::Tensor& x) {
  if (x.dim() == 2) return {x.size(0), x.size(1), 1};
  const int64_t plane = x.size(2) * x.size(3);
  if (format_of(x) == at::MemoryFormat::ChannelsLast) return {x.size(0) * plane, x.size(1), 1};
  return {x.size(0), x.size(1), plane};
}

Span<double> part(const at::Tensor& doubles, int64_t index, int64_t channels) {
  return {doubles.data_ptr<double>() + index * channels, channels};
}
template <class T>
Span<const T> row_of(const at::Tensor& table, int64_t row) {
  return {table.const_data_ptr<T>() + row * table.size(1), table.size(1)};
}

struct Lent {
  at::Tensor memory;
  Scratch scratch;
};
Lent lend(const ChannelGrid& grid) {
  const int64_t bytes = kernels::cpu::channel_sums_scratch_bytes(grid);
  at::Tensor memory = at::empty({bytes}, at::kByte);
  return {memory, {memory.data_ptr(), bytes}};
}

struct Statistics {
  at::Tensor moments;  // (2, C) fp64: mean, 1 / sqrt(var + ε)
  at::Tensor var;      // (C) fp64, biased; undefined for running statistics
  double count = 0;    // rows behind them, over all ranks
};

void local_sums(const at::Tensor& sums, const at::Tensor& x, Span<const double> shift) {
  const ChannelGrid grid = grid_of(x);
  const Lent lent = lend(grid);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "channel_sums", [&] {
    kernels::cpu::channel_sums<scalar_t>(part(sums, 0, grid.channels), part(sums, 1, grid.channels),
                                         x.const_data_ptr<scalar_t>(), shift, grid, lent.scratch, cpu());
  });
}

// Collective.
Statistics batch_statistics(const at::Tensor& x, const BatchNormOptions& options) {
  const int64_t channels = x.size(1);
  at::Tensor sums = at::empty({2 * channels + 1}, at::kDouble);  // Σx, Σx², rows
  double* const sum = sums.data_ptr<double>();
  double* const square = sum + channels;
  const auto gather = [&](Span<const double> shift) {
    local_sums(sums, x, shift);
    sum[2 * channels] = static_cast<double>(x.numel() / channels);
    if (options.comm) options.comm->all_reduce(sums);
  };
  Statistics s;
  s.moments = at::empty({2, channels}, at::kDouble);
  s.var = at::empty({channels}, at::kDouble);
  double* const mean = s.moments.data_ptr<double>();
  double* const var = s.var.data_ptr<double>();

  gather({});
  s.count = sum[2 * channels];
  PAL_CHECK(s.count > 1, "batch norm needs more than one value per channel over all ranks, got", s.count,
            "use a larger train.global_batch");
  bool again = false;  // the same on every rank: it is made of reduced numbers
  for (int64_t c = 0; c < channels; ++c) {
    mean[c] = sum[c] / s.count;
    var[c] = square[c] / s.count - mean[c] * mean[c];
    again = again || mean[c] * mean[c] > kCancellation * var[c];
  }
  if (again) {
    gather(part(s.moments, 0, channels));
    for (int64_t c = 0; c < channels; ++c) {
      const double rest = sum[c] / s.count;
      mean[c] += rest;
      var[c] = square[c] / s.count - rest * rest;
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    var[c] = var[c] < 0 ? 0 : var[c];
    mean[channels + c] = 1 / std::sqrt(var[c] + options.epsilon);
  }
  return s;
}

Statistics running_statistics(const BatchNorm& norm, double epsilon) {
  Statistics s;
  s.moments = at::empty({2, norm.running_mean.size(0)}, at::kDouble);
  s.moments[0].copy_(norm.running_mean);
  s.moments[1].copy_(norm.running_var).add_(epsilon).rsqrt_();
  return s;
}

// The mean is taken off in two parts, its rounding (exact to subtract near it) and the rest, which goes to the offset:
// so x − mean is right in float32 for |mean| ≫ std.
template <class T>
at::Tensor forward_table(const Statistics& s, const at::Tensor& weight, const at::Tensor& bias) {
  const int64_t channels = weight.size(0);
  at::Tensor table = at::empty({3, channels}, weight.options().requires_grad(false));  // shift, scale, offset
  const double* mean = s.moments.const_data_ptr<double>();
  const double* inverse = mean + channels;
  T* shift = table.data_ptr<T>();
  for (int64_t c = 0; c < channels; ++c) {
    const double scale = static_cast<double>(weight.const_data_ptr<T>()[c]) * inverse[c];
    shift[c] = static_cast<T>(mean[c]);
    shift[channels + c] = static_cast<T>(scale);
    shift[2 * channels + c] =
        static_cast<T>(static_cast<double>(bias.const_data_ptr<T>()[c]) - (mean[c] - static_cast<double>(shift[c])) * scale);
  }
  return table;
}

// dx = w/σ·(g − Σg/n − x̂·Σ(g x̂)/n); n = 0: the statistics are constants.
template <class T>
at::Tensor backward_table(const double* mean, const double* sum, const double* product, const at::Tensor& weight, double n) {
  const int64_t channels = weight.size(0);
  at::Tensor table = at::empty({4, channels}, weight.options().requires_grad(false));  // shift, a, p, q
  const double* inverse = mean + channels;
  T* shift = table.data_ptr<T>();
  for (int64_t c = 0; c < channels; ++c) {
    const double a = static_cast<double>(weight.const_data_ptr<T>()[c]) * inverse[c];
    const double p = n > 0 ? -a * inverse[c] * inverse[c] * product[c] / n : 0;
    const double q = n > 0 ? -a * sum[c] / n : 0;
    shift[c] = static_cast<T>(mean[c]);
    shift[channels + c] = static_cast<T>(a);
    shift[2 * channels + c] = static_cast<T>(p);
    shift[3 * channels + c] = static_cast<T>(q - p * (mean[c] - static_cast<double>(shift[c])));
  }
  return table;
}

struct BatchNormFunction : torch::autograd::Function<BatchNormFunction> {
  // A null comm: local statistics; a count of 0: running ones.
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const std::optional<at::Tensor>& residual, const Statistics& statistics,
                            Activation act, Comm* comm) {
    const ChannelGrid grid = grid_of(x);
    at::Tensor y = at::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "channel_affine", [&] {
      const at::Tensor table = forward_table<scalar_t>(statistics, weight, bias);
      kernels::cpu::channel_affine<scalar_t>(y.data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(),
                                             residual ? residual->const_data_ptr<scalar_t>() : nullptr,
                                             row_of<scalar_t>(table, 0), row_of<scalar_t>(table, 1),
                                             row_of<scalar_t>(table, 2), grid, act, cpu());
    });
    ctx->save_for_backward({x, weight, statistics.moments, act == Activation::relu ? y : at::Tensor()});
    ctx->saved_data["count"] = statistics.count;
    ctx->saved_data["residual"] = residual.has_value();
    ctx->saved_data["comm"] = reinterpret_cast<int64_t>(comm);
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx, torch::autograd::variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &moments = saved[2], &y = saved[3];
    const double count = ctx->saved_data["count"].toDouble();
    const bool residual = ctx->saved_data["residual"].toBool();
    Comm* const comm = reinterpret_cast<Comm*>(ctx->saved_data["comm"].toInt());
    const at::Tensor dy = grads[0].contiguous(format_of(x));
    const ChannelGrid grid = grid_of(x);
    const int64_t channels = grid.channels;
    const Lent lent = lend(grid);
    const at::Tensor sums = at::empty({2, channels}, at::kDouble);  // Σg, Σg(x − mean)
    at::Tensor dx = at::empty_like(x), dweight, dbias;
    // Without ReLU the residual's gradient is dy itself.
    at::Tensor g = residual ? (y.defined() ? at::empty_like(x) : dy) : at::Tensor();
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "channel_grad", [&] {
      const auto read = [](const at::Tensor& t) { return t.defined() ? t.const_data_ptr<scalar_t>() : nullptr; };
      scalar_t* const keep = y.defined() && residual ? g.data_ptr<scalar_t>() : nullptr;
      kernels::cpu::channel_grad_sums<scalar_t>(part(sums, 0, channels), part(sums, 1, channels), keep, read(dy), read(y),
                                                read(x), part(moments, 0, channels), grid, lent.scratch, cpu());
      // Of this rank's rows, hence taken (copied, in float64 too) before the all-reduce.
      dbias = sums[0].to(weight.scalar_type(), false, true);
      dweight = sums[1].mul(moments[1]).to(weight.scalar_type());
      if (comm && count > 0) comm->all_reduce(sums);
      const double* sum = sums.const_data_ptr<double>();
      const at::Tensor table = backward_table<scalar_t>(moments.const_data_ptr<double>(), sum, sum + channels, weight, count);
      // A kept g has been masked already.
      kernels::cpu::channel_grad<scalar_t>(dx.data_ptr<scalar_t>(), keep ? keep : read(dy), keep ? nullptr : read(y),
                                           read(x), row_of<scalar_t>(table, 0), row_of<scalar_t>(table, 1),
                                           row_of<scalar_t>(table, 2), row_of<scalar_t>(table, 3), grid, cpu());
    });
    return {dx, dweight, dbias, g, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

BatchNorm::BatchNorm(int64_t channels, const BatchNormOptions& options) : options_(options) {
  const auto type = at::TensorOptions().dtype(options.dtype);
  weight = register_parameter("weight", at::ones({channels}, type));
  bias = register_parameter("bias", at::zeros({channels}, type));
  running_mean = register_buffer("running_mean", at::zeros({channels}, type));
  running_var = register_buffer("running_var", at::ones({channels}, type));
  num_batches_tracked = register_buffer("num_batches_tracked", at::zeros({}, at::kLong));
}

at::Tensor BatchNorm::forward(const at::Tensor& x, Activation act, const at::Tensor& residual) {
  PAL_ASSERT((x.dim() == 2 || x.dim() == 4) && x.size(1) == weight.size(0), "x is (rows, C) or (n, C, height, width)");
  PAL_ASSERT(x.is_cpu() && x.scalar_type() == weight.scalar_type(), "batch norm runs on the CPU, in the type of its weight");
  PAL_ASSERT(!residual.defined() || residual.sizes() == x.sizes(), "the residual has x's shape");
  const at::Tensor dense = x.contiguous(format_of(x));
  Statistics statistics;
  {
    const at::NoGradGuard no_grad;
    if (is_training()) {
      statistics = batch_statistics(dense, options_);
      remember(statistics.moments[0], statistics.var.mul(statistics.count / (statistics.count - 1)));
    } else {
      statistics = running_statistics(*this, options_.epsilon);
    }
  }
  std::optional<at::Tensor> added;
  if (residual.defined()) added = residual.contiguous(format_of(dense));
  return BatchNormFunction::apply(dense, weight, bias, added, statistics, act, options_.comm);
}

void BatchNorm::remember(const at::Tensor& mean, const at::Tensor& unbiased_var) {
  // From the last pending ones, where a step has several forward passes.
  const auto follow = [this](const at::Tensor& from, const at::Tensor& to) {
    return from.to(at::kDouble).mul(1 - options_.momentum).add(to, options_.momentum).to(from.scalar_type());
  };
  pending_mean_ = follow(pending_batches_ > 0 ? pending_mean_ : running_mean, mean);
  pending_var_ = follow(pending_batches_ > 0 ? pending_var_ : running_var, unbiased_var);
  ++pending_batches_;
}

void BatchNorm::commit() {
  if (pending_batches_ == 0) return;
  const at::NoGradGuard no_grad;
  running_mean.copy_(pending_mean_);
  running_var.copy_(pending_var_);
  num_batches_tracked.add_(pending_batches_);
  discard();
}

void BatchNorm::discard() {
  pending_mean_ = pending_var_ = at::Tensor();
  pending_batches_ = 0;
}

void commit_batch_norm(torch::nn::Module& module) {
  module.apply([](torch::nn::Module& m) {
    if (auto* norm = dynamic_cast<BatchNorm*>(&m)) norm->commit();
  });
}

void discard_batch_norm(torch::nn::Module& module) {
  module.apply([](torch::nn::Module& m) {
    if (auto* norm = dynamic_cast<BatchNorm*>(&m)) norm->discard();
  });
}

}  // namespace pal
