#include "core/model/batch_norm.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "core/ops/batch_norm.h"
#include "kernels/base/error.h"

namespace pal::model {
namespace {

// Above this mean²/var, Σx² − (Σx)²/n loses too many digits, and the squares are summed again around the mean.
constexpr double kCancellation = 100;

int norm_threads() { return at::get_num_threads(); }
at::TensorOptions double_options(const at::Tensor& x) {
  return at::TensorOptions().dtype(at::kDouble).device(x.device());
}

struct Statistics {
  at::Tensor mean, inverse;  // (C) fp64: mean, 1 / sqrt(var + ε)
  at::Tensor var;            // (C) fp64, biased; undefined for running statistics
  at::Tensor count;          // () fp64: rows behind them, over all ranks; undefined for running statistics
};

// Collective. On the CPU sums around 0, and again around the mean if that loses digits. On a GPU one pass around the
// running mean: a check would wait for the GPU in every layer, and fp64 has enough digits near the running mean.
Statistics batch_statistics(const at::Tensor& x, const at::Tensor& running_mean, const BatchNormOptions& options) {
  const int64_t channels = x.size(1);
  const at::Tensor sums = at::empty({2 * channels + 1}, double_options(x));  // Σx, Σx², rows
  const at::Tensor both = sums.narrow(0, 0, 2 * channels).view({2, channels});
  Statistics s;
  s.count = sums[2 * channels];
  const auto gather = [&](const at::Tensor& shift) {
    ops::channel_sums(both, x, shift, norm_threads());
    s.count.fill_(static_cast<double>(x.numel() / channels));
    if (options.comm) options.comm->all_reduce(sums);
    const at::Tensor around = both[0] / s.count;
    s.var = (both[1] / s.count).sub_(around * around);
    s.mean = shift.defined() ? shift + around : around;
  };
  if (x.is_cpu()) {
    gather({});
    PAL_CHECK(s.count.item<double>() > 1, "batch norm needs more than one value per channel over all ranks, got",
              s.count.item<double>(), "use a larger train.global_batch");
    // The same on every rank, because it depends on reduced numbers only.
    if ((s.mean * s.mean).gt(s.var * kCancellation).any().item<bool>()) gather(s.mean);
  } else {
    gather(running_mean.to(at::kDouble));
  }
  s.var.clamp_min_(0);
  s.inverse = (s.var + options.epsilon).sqrt_().reciprocal_();
  return s;
}

Statistics running_statistics(const BatchNorm& norm, double epsilon) {
  Statistics s;
  s.mean = norm.running_mean.to(at::kDouble);
  s.inverse = norm.running_var.to(at::kDouble, false, true).add_(epsilon).sqrt_().reciprocal_();
  return s;
}

// The mean is subtracted in two parts: its float32 rounding, exactly, and the remainder, in the offset. So x − mean is
// accurate in float32 for |mean| ≫ std.
ops::AffineNumbers forward_numbers(const Statistics& s, const at::Tensor& weight, const at::Tensor& bias) {
  const at::ScalarType type = weight.scalar_type();
  const at::Tensor scale = weight.to(at::kDouble) * s.inverse, shift = s.mean.to(type);
  return {shift, scale.to(type), (bias.to(at::kDouble) - (s.mean - shift.to(at::kDouble)) * scale).to(type)};
}

// dx = w/σ·(g − Σg/n − x̂·Σ(g x̂)/n); with constant statistics the two sums are absent. sums: Σg, Σg(x − mean).
ops::GradNumbers backward_numbers(const at::Tensor& mean, const at::Tensor& inverse, const at::Tensor& sums,
                                  const at::Tensor& weight, const at::Tensor& n) {
  const at::ScalarType type = weight.scalar_type();
  const at::Tensor a = weight.to(at::kDouble) * inverse, shift = mean.to(type);
  if (!n.defined()) {
    const at::Tensor zero = at::zeros_like(shift);
    return {shift, a.to(type), zero, zero};
  }
  const at::Tensor p = (-a * inverse * inverse).mul_(sums[1]).div_(n), q = (-a * sums[0]).div_(n);
  return {shift, a.to(type), p.to(type), (q - p * (mean - shift.to(at::kDouble))).to(type)};
}

struct BatchNormFunction : torch::autograd::Function<BatchNormFunction> {
  // Null comm: local statistics.
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const std::optional<at::Tensor>& residual,
                            const Statistics& statistics, Activation act, comm::Comm* comm) {
    at::Tensor y = at::empty_like(x);
    ops::channel_affine(y, x, residual.value_or(at::Tensor()), forward_numbers(statistics, weight, bias), act,
                        norm_threads());
    ctx->save_for_backward(
        {x, weight, statistics.mean, statistics.inverse, statistics.count, act == Activation::relu ? y : at::Tensor()});
    ctx->saved_data["residual"] = residual.has_value();
    ctx->saved_data["comm"] = reinterpret_cast<int64_t>(comm);
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &mean = saved[2], &inverse = saved[3], &count = saved[4],
                     &y = saved[5];
    const bool residual = ctx->saved_data["residual"].toBool();
    comm::Comm* const comm = reinterpret_cast<comm::Comm*>(ctx->saved_data["comm"].toInt());
    const at::Tensor dy = grads[0].contiguous(ops::channel_format(x));
    const at::Tensor sums = at::empty({2, x.size(1)}, double_options(x));  // Σg, Σg(x − mean)
    // The residual's gradient is g: dy masked by the ReLU, or dy itself without ReLU.
    const at::Tensor kept = residual && y.defined() ? at::empty_like(x) : at::Tensor();
    ops::channel_grad_sums(sums, kept, dy, y, x, mean, norm_threads());
    // Of this rank's rows: copied before the all-reduce changes the sums.
    const at::Tensor dbias = sums[0].to(weight.scalar_type(), false, true),
                     dweight = sums[1].mul(inverse).to(weight.scalar_type());
    if (comm && count.defined()) comm->all_reduce(sums);
    at::Tensor dx = at::empty_like(x);
    ops::channel_grad(dx, kept.defined() ? kept : dy, kept.defined() ? at::Tensor() : y, x,
                      backward_numbers(mean, inverse, sums, weight, count), norm_threads());
    return {dx, dweight, dbias, kept.defined() || !residual ? kept : dy, at::Tensor(), at::Tensor(), at::Tensor()};
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
  PAL_ASSERT(x.scalar_type() == weight.scalar_type() || x.scalar_type() == at::kBFloat16,
             "x has the type of the weight, or is bfloat16");
  PAL_ASSERT(!residual.defined() || residual.sizes() == x.sizes(), "the residual has x's shape");
  // The CPU kernel has no bfloat16 (autocast): convert to float32 and back.
  const at::ScalarType type = x.is_cpu() ? weight.scalar_type() : x.scalar_type();
  const at::Tensor dense = x.to(type).contiguous(ops::channel_format(x));
  Statistics statistics;
  {
    const at::NoGradGuard no_grad;
    if (is_training()) {
      statistics = batch_statistics(dense, running_mean, options_);
      remember(statistics.mean, statistics.var * (statistics.count / (statistics.count - 1)));
    } else {
      statistics = running_statistics(*this, options_.epsilon);
    }
  }
  std::optional<at::Tensor> added;
  if (residual.defined()) added = residual.to(type).contiguous(ops::channel_format(dense));
  return BatchNormFunction::apply(dense, weight, bias, added, statistics, act, options_.comm).to(x.scalar_type());
}

void BatchNorm::remember(const at::Tensor& mean, const at::Tensor& unbiased_var) {
  // A step with several forward passes starts from the last pending statistics.
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

}  // namespace pal::model
