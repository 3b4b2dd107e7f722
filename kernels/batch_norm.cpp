// batch_norm: CPU twin: cuts the grid into tiles for the threads; the loops are in batch_norm_impl.cpp.
#include "kernels/batch_norm.h"

#include <algorithm>

#include "kernels/base/isa.h"
#include "kernels/base/threads.h"
#include "kernels/batch_norm_impl.h"

namespace pal::kernels {

PAL_ISA_TABLES(batch_norm_loops, batch_norm, BatchNormLoops)

namespace cpu {
namespace {

// Elements of a tile: small enough to share out, large enough to be worth a thread.
constexpr int64_t kTile = 1 << 15;

// Outer indices per tile of a sum over rows: a function of the width alone, so that the order of a sum is fixed.
int64_t tile_rows(const ChannelGrid& grid) {
  return std::max<int64_t>(64, kTile / std::max<int64_t>(1, grid.channels));
}
int64_t row_tiles(const ChannelGrid& grid) { return (grid.outer + tile_rows(grid) - 1) / tile_rows(grid); }

// f(tile) for tiles that cover the grid.
template <class F>
void for_tiles(const ChannelGrid& grid, Cpu cpu, const F& f) {
  const int64_t per_outer = std::max<int64_t>(1, grid.channels * grid.inner);
  parallel_for(cpu, grid.outer, std::max<int64_t>(1, kTile / per_outer), [&](int64_t begin, int64_t end) {
    f(ChannelTile{grid, begin, end, 0, grid.channels});
  });
}

// Fills firsts and seconds with f's sums; f(firsts, seconds, tile) writes those of a tile.
// Planes: a thread owns channels. Rows: a thread owns a tile of rows, and the tiles are added in order.
template <class F>
void for_sum_tiles(Span<double> firsts, Span<double> seconds, const ChannelGrid& grid, Scratch scratch, Cpu cpu,
                   const F& f) {
  const int64_t channels = grid.channels;
  PAL_ASSERT(firsts.size == channels && seconds.size == channels, "one sum per channel");
  if (grid.inner > 1) {
    const int64_t per_channel = std::max<int64_t>(1, grid.outer * grid.inner);
    parallel_for(cpu, channels, std::max<int64_t>(1, kTile / per_channel), [&](int64_t first, int64_t last) {
      f(firsts.data, seconds.data, ChannelTile{grid, 0, grid.outer, first, last});
    });
    return;
  }
  PAL_ASSERT(scratch.bytes >= channel_sums_scratch_bytes(grid), "scratch as asked for");
  double* parts = static_cast<double*>(scratch.data);
  parallel_for(cpu, grid.outer, tile_rows(grid), [&](int64_t begin, int64_t end) {
    double* part = parts + begin / tile_rows(grid) * 2 * channels;
    f(part, part + channels, ChannelTile{grid, begin, end, 0, channels});
  });
  std::fill_n(firsts.data, channels, 0.0);
  std::fill_n(seconds.data, channels, 0.0);
  for (int64_t t = 0; t < row_tiles(grid); ++t) {
    const double* part = parts + t * 2 * channels;
    for (int64_t c = 0; c < channels; ++c) firsts[c] += part[c];
    for (int64_t c = 0; c < channels; ++c) seconds[c] += part[channels + c];
  }
}

}  // namespace

int64_t channel_sums_scratch_bytes(ChannelGrid grid) {
  const int64_t parts = grid.inner > 1 ? 0 : row_tiles(grid) * 2 * grid.channels;
  return (parts + grid.channels) * static_cast<int64_t>(sizeof(double));
}

template <class T>
void channel_sums(Span<double> sums, Span<double> squares, const T* x, Span<const double> shift, ChannelGrid grid,
                  Scratch scratch, Cpu cpu) {
  PAL_ASSERT(scratch.bytes >= channel_sums_scratch_bytes(grid), "scratch as asked for");
  const double* from = shift.data;
  if (!from) {  // the zeros lie behind the tiles' sums
    double* zeros =
        static_cast<double*>(scratch.data) + scratch.bytes / static_cast<int64_t>(sizeof(double)) - grid.channels;
    std::fill_n(zeros, grid.channels, 0.0);
    from = zeros;
  }
  const auto& of = batch_norm_loops<T>(cpu.isa);
  for_sum_tiles(sums, squares, grid, scratch, cpu,
                [&](double* first, double* second, const ChannelTile& tile) { of.sums(first, second, x, from, tile); });
}

template <class T>
void channel_grad_sums(Span<double> sums, Span<double> products, T* g, const T* dy, const T* y, const T* x,
                       Span<const double> mean, ChannelGrid grid, Scratch scratch, Cpu cpu) {
  PAL_ASSERT(mean.size == grid.channels, "one mean per channel");
  const auto& of = batch_norm_loops<T>(cpu.isa);
  for_sum_tiles(sums, products, grid, scratch, cpu, [&](double* first, double* second, const ChannelTile& tile) {
    of.grad_sums(first, second, g, dy, y, x, mean.data, tile);
  });
}

template <class T>
void channel_affine(T* y, const T* x, const T* residual, Span<const T> shift, Span<const T> scale, Span<const T> offset,
                    ChannelGrid grid, Activation act, Cpu cpu) {
  PAL_ASSERT(shift.size == grid.channels && scale.size == grid.channels && offset.size == grid.channels,
             "one coefficient per channel");
  const auto& of = batch_norm_loops<T>(cpu.isa);
  for_tiles(grid, cpu, [&](const ChannelTile& tile) {
    of.affine(y, x, residual, shift.data, scale.data, offset.data, act, tile);
  });
}

template <class T>
void channel_grad(T* dx, const T* dy, const T* y, const T* x, Span<const T> shift, Span<const T> a, Span<const T> p,
                  Span<const T> q, ChannelGrid grid, Cpu cpu) {
  PAL_ASSERT(
      shift.size == grid.channels && a.size == grid.channels && p.size == grid.channels && q.size == grid.channels,
      "one coefficient per channel");
  const auto& of = batch_norm_loops<T>(cpu.isa);
  for_tiles(grid, cpu,
            [&](const ChannelTile& tile) { of.grad(dx, dy, y, x, shift.data, a.data, p.data, q.data, tile); });
}

#define PAL_INSTANTIATE(T)                                                                                             \
  template void channel_sums<T>(Span<double>, Span<double>, const T*, Span<const double>, ChannelGrid, Scratch, Cpu);  \
  template void channel_affine<T>(T*, const T*, const T*, Span<const T>, Span<const T>, Span<const T>, ChannelGrid,    \
                                  Activation, Cpu);                                                                    \
  template void channel_grad_sums<T>(Span<double>, Span<double>, T*, const T*, const T*, const T*, Span<const double>, \
                                     ChannelGrid, Scratch, Cpu);                                                       \
  template void channel_grad<T>(T*, const T*, const T*, const T*, Span<const T>, Span<const T>, Span<const T>,         \
                                Span<const T>, ChannelGrid, Cpu);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(double)
#undef PAL_INSTANTIATE

}  // namespace cpu
}  // namespace pal::kernels
