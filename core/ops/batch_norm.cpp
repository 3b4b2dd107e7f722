#include "core/ops/batch_norm.h"

#include "core/ops/dispatch.h"

namespace pal::ops {
namespace {

using kernels::ChannelGrid;
namespace cpu = kernels::cpu;
namespace cuda = kernels::cuda;

ChannelGrid channel_grid(const at::Tensor& x) {
  if (x.dim() == 2) return {x.size(0), x.size(1), 1};
  const int64_t plane = x.size(2) * x.size(3);
  if (channel_format(x) == at::MemoryFormat::ChannelsLast) return {x.size(0) * plane, x.size(1), 1};
  return {x.size(0), x.size(1), plane};
}

// The pointer of a tensor for a kernel; null if undefined.
template <class T>
T* elements(const at::Tensor& t) {
  return t.defined() ? static_cast<T*>(t.data_ptr()) : nullptr;
}

template <class T>
kernels::Span<T> half(const at::Tensor& sums, int64_t index) {
  return {span<T>(sums).data + index * sums.size(1), sums.size(1)};
}

}  // namespace

at::MemoryFormat channel_format(const at::Tensor& x) {
  if (x.dim() != 4) return at::MemoryFormat::Contiguous;
  return x.is_cpu() ? x.suggest_memory_format() : at::MemoryFormat::ChannelsLast;
}

void channel_sums(const at::Tensor& sums, const at::Tensor& x, const at::Tensor& shift, int threads) {
  const ChannelGrid grid = channel_grid(x);
  dispatch(
      "channel_sums", x, {sums, shift}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        const ScratchMemory scratch(cpu::channel_sums_scratch_bytes(grid));
        cpu::channel_sums<T>(half<double>(sums, 0), half<double>(sums, 1), elements<const T>(x),
                             maybe_span<const double>(shift), grid, scratch, how);
      },
      [&](auto t, cudaStream_t stream) {
        using T = decltype(t);
        const ScratchMemory scratch(cuda::channel_sums_scratch_bytes(grid), x);
        cuda::channel_sums<T>(half<double>(sums, 0), half<double>(sums, 1), elements<const T>(x),
                              maybe_span<const double>(shift), grid, scratch, stream);
      });
}

void channel_affine(const at::Tensor& y, const at::Tensor& x, const at::Tensor& residual, const AffineNumbers& n,
                    kernels::Activation act, int threads) {
  const ChannelGrid grid = channel_grid(x);
  dispatch(
      "channel_affine", x, {y, residual, n.shift, n.scale, n.offset}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        cpu::channel_affine<T>(elements<T>(y), elements<const T>(x), elements<const T>(residual),
                               span<const T>(n.shift), span<const T>(n.scale), span<const T>(n.offset), grid, act, how);
      },
      [&](auto t, cudaStream_t stream) {
        using T = decltype(t);
        cuda::channel_affine<T>(elements<T>(y), elements<const T>(x), elements<const T>(residual),
                                span<const float>(n.shift), span<const float>(n.scale), span<const float>(n.offset),
                                grid, act, stream);
      });
}

void channel_grad_sums(const at::Tensor& sums, const at::Tensor& g, const at::Tensor& dy, const at::Tensor& y,
                       const at::Tensor& x, const at::Tensor& mean, int threads) {
  const ChannelGrid grid = channel_grid(x);
  dispatch(
      "channel_grad_sums", x, {sums, g, dy, y, mean}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        const ScratchMemory scratch(cpu::channel_sums_scratch_bytes(grid));
        cpu::channel_grad_sums<T>(half<double>(sums, 0), half<double>(sums, 1), elements<T>(g), elements<const T>(dy),
                                  elements<const T>(y), elements<const T>(x), span<const double>(mean), grid, scratch,
                                  how);
      },
      [&](auto t, cudaStream_t stream) {
        using T = decltype(t);
        const ScratchMemory scratch(cuda::channel_sums_scratch_bytes(grid), x);
        cuda::channel_grad_sums<T>(half<double>(sums, 0), half<double>(sums, 1), elements<T>(g), elements<const T>(dy),
                                   elements<const T>(y), elements<const T>(x), span<const double>(mean), grid, scratch,
                                   stream);
      });
}

void channel_grad(const at::Tensor& dx, const at::Tensor& dy, const at::Tensor& y, const at::Tensor& x,
                  const GradNumbers& n, int threads) {
  const ChannelGrid grid = channel_grid(x);
  dispatch(
      "channel_grad", x, {dx, dy, y, n.shift, n.a, n.p, n.q}, threads,
      [&](auto t, kernels::Cpu how) {
        using T = decltype(t);
        cpu::channel_grad<T>(elements<T>(dx), elements<const T>(dy), elements<const T>(y), elements<const T>(x),
                             span<const T>(n.shift), span<const T>(n.a), span<const T>(n.p), span<const T>(n.q), grid,
                             how);
      },
      [&](auto t, cudaStream_t stream) {
        using T = decltype(t);
        cuda::channel_grad<T>(elements<T>(dx), elements<const T>(dy), elements<const T>(y), elements<const T>(x),
                              span<const float>(n.shift), span<const float>(n.a), span<const float>(n.p),
                              span<const float>(n.q), grid, stream);
      });
}

}  // namespace pal::ops
