// batch_norm on CUDA: a warp along 32 channels, eight warps down the rows of a tile, so that loads are whole lines and
// a channel's coefficients stay in registers. Sums over rows: a block per tile, then a block per channel over the
// tiles.
#include "kernels/base/device.cuh"
#include "kernels/base/scratch.h"
#include "kernels/batch_norm.h"

namespace pal::kernels::cuda {
namespace {

constexpr int kDown = 8;                           // warps of a block
constexpr int64_t kSumRows = 1024, kMapRows = 64;  // of a tile
constexpr int kThreads = kWarp * kDown;

// This thread's channel and rows [begin, end), kDown apart.
struct Walk {
  int64_t c, begin, end;
  __device__ Walk(ChannelGrid grid, int64_t tile_rows)
      : c(static_cast<int64_t>(blockIdx.y) * kWarp + threadIdx.x),
        begin(blockIdx.x * tile_rows + threadIdx.y),
        end(c < grid.channels ? min(grid.outer, (blockIdx.x + 1) * tile_rows) : 0) {}
};

// The block's sums per channel, to tile blockIdx.x of the two halves of `partials`: (tiles, channels) each.
__device__ void put_tile(double* partials, ChannelGrid grid, int64_t c, double first, double second) {
  __shared__ double firsts[kDown][kWarp], seconds[kDown][kWarp];
  firsts[threadIdx.y][threadIdx.x] = first;
  seconds[threadIdx.y][threadIdx.x] = second;
  __syncthreads();
  if (threadIdx.y != 0 || c >= grid.channels) return;
  for (int w = 1; w < kDown; ++w) {
    first += firsts[w][threadIdx.x];
    second += seconds[w][threadIdx.x];
  }
  const int64_t at = blockIdx.x * grid.channels + c;
  partials[at] = first;
  partials[gridDim.x * grid.channels + at] = second;
}

template <class T>
__global__ void sums_kernel(double* partials, const T* x, const double* shift, ChannelGrid grid) {
  const Walk walk(grid, kSumRows);
  const double from = shift != nullptr && walk.c < grid.channels ? shift[walk.c] : 0.0;
  double first = 0, second = 0;
  for (int64_t r = walk.begin; r < walk.end; r += kDown) {
    const double v = static_cast<double>(to_float(x[r * grid.channels + walk.c])) - from;
    first += v;
    second += v * v;
  }
  put_tile(partials, grid, walk.c, first, second);
}

template <class T>
__global__ void grad_sums_kernel(double* partials, T* g, const T* dy, const T* y, const T* x, const double* mean,
                                 ChannelGrid grid) {
  const Walk walk(grid, kSumRows);
  const double from = walk.c < grid.channels ? mean[walk.c] : 0.0;
  double first = 0, second = 0;
  for (int64_t r = walk.begin; r < walk.end; r += kDown) {
    const int64_t e = r * grid.channels + walk.c;
    const float v = y != nullptr && to_float(y[e]) <= 0 ? 0.0f : to_float(dy[e]);
    if (g != nullptr) g[e] = from_float<T>(v);
    first += static_cast<double>(v);
    second += static_cast<double>(v) * (static_cast<double>(to_float(x[e])) - from);
  }
  put_tile(partials, grid, walk.c, first, second);
}

// Block (c, which half): the tiles of a channel.
__global__ void add_tiles_kernel(double* firsts, double* seconds, const double* partials, int64_t tiles,
                                 int64_t channels) {
  const double* half = partials + blockIdx.y * tiles * channels;
  double total = 0;
  for (int64_t t = threadIdx.x; t < tiles; t += kThreads) total += half[t * channels + blockIdx.x];
  total = block_sum(total);
  if (threadIdx.x == 0) (blockIdx.y == 0 ? firsts : seconds)[blockIdx.x] = total;
}

template <class T>
__global__ void affine_kernel(T* y, const T* x, const T* residual, const float* shift, const float* scale,
                              const float* offset, ChannelGrid grid, Activation act) {
  const Walk walk(grid, kMapRows);
  if (walk.c >= grid.channels) return;
  const float from = shift[walk.c], by = scale[walk.c], to = offset[walk.c];
  for (int64_t r = walk.begin; r < walk.end; r += kDown) {
    const int64_t e = r * grid.channels + walk.c;
    float v = fmaf(to_float(x[e]) - from, by, to);
    if (residual != nullptr) v += to_float(residual[e]);
    y[e] = from_float<T>(act == Activation::relu && v < 0 ? 0.0f : v);  // NaN stays NaN
  }
}

template <class T>
__global__ void grad_kernel(T* dx, const T* dy, const T* y, const T* x, const float* shift, const float* a,
                            const float* p, const float* q, ChannelGrid grid) {
  const Walk walk(grid, kMapRows);
  if (walk.c >= grid.channels) return;
  const float from = shift[walk.c], of_g = a[walk.c], of_x = p[walk.c], rest = q[walk.c];
  for (int64_t r = walk.begin; r < walk.end; r += kDown) {
    const int64_t e = r * grid.channels + walk.c;
    const float g = y != nullptr && to_float(y[e]) <= 0 ? 0.0f : to_float(dy[e]);
    dx[e] = from_float<T>(fmaf(of_g, g, fmaf(of_x, to_float(x[e]) - from, rest)));
  }
}

struct Layout {
  int64_t tiles;
  double* partials;  // (2, tiles, channels)
  int64_t bytes;
  Layout(void* base, ChannelGrid grid) : tiles(ceil_div(grid.outer, kSumRows)) {
    ScratchPieces pieces(base);
    partials = pieces.take<double>(2 * tiles * grid.channels);
    bytes = pieces.bytes();
  }
};

dim3 tiles_of(ChannelGrid grid, int64_t rows) {
  return {static_cast<unsigned>(ceil_div(grid.outer, rows)), static_cast<unsigned>(ceil_div(grid.channels, kWarp))};
}
const dim3 kBlock(kWarp, kDown);

void check_grid(const char* op, ChannelGrid grid) {
  PAL_CHECK(grid.inner == 1, std::string(op) + " on CUDA: inner size of the grid", grid.inner,
            "give rows: channels-last images or a matrix");
  PAL_CHECK(grid.outer >= 0 && grid.channels >= 0, std::string(op) + ": negative size",
            std::min(grid.outer, grid.channels), "give 0 or more");
}

// Launches f(partials) over the tiles of sums and adds them up.
template <class F>
void sum_tiles(const char* op, Span<double> firsts, Span<double> seconds, ChannelGrid grid, Scratch scratch,
               cudaStream_t stream, const F& f) {
  check_grid(op, grid);
  check_span(op, firsts, grid.channels);
  check_span(op, seconds, grid.channels);
  if (grid.channels == 0) return;
  const Layout at(scratch.data, grid);
  check_scratch("channel_sums", scratch, at.bytes);
  if (at.tiles > 0) {
    f(at.partials);
    check_launch(stream);
  }
  const dim3 channels(static_cast<unsigned>(grid.channels), 2);
  add_tiles_kernel<<<channels, kThreads, 0, stream>>>(firsts.data, seconds.data, at.partials, at.tiles, grid.channels);
  check_launch(stream);
}

}  // namespace

int64_t channel_sums_scratch_bytes(ChannelGrid grid) { return Layout(nullptr, grid).bytes; }

template <class T>
void channel_sums(Span<double> sums, Span<double> squares, const T* x, Span<const double> shift, ChannelGrid grid,
                  Scratch scratch, cudaStream_t stream) {
  sum_tiles("channel_sums", sums, squares, grid, scratch, stream, [&](double* partials) {
    sums_kernel<T><<<tiles_of(grid, kSumRows), kBlock, 0, stream>>>(partials, x, shift.data, grid);
  });
}

template <class T>
void channel_grad_sums(Span<double> sums, Span<double> products, T* g, const T* dy, const T* y, const T* x,
                       Span<const double> mean, ChannelGrid grid, Scratch scratch, cudaStream_t stream) {
  check_span("channel_grad_sums: mean", mean, grid.channels);
  sum_tiles("channel_grad_sums", sums, products, grid, scratch, stream, [&](double* partials) {
    grad_sums_kernel<T><<<tiles_of(grid, kSumRows), kBlock, 0, stream>>>(partials, g, dy, y, x, mean.data, grid);
  });
}

template <class T>
void channel_affine(T* y, const T* x, const T* residual, Span<const float> shift, Span<const float> scale,
                    Span<const float> offset, ChannelGrid grid, Activation act, cudaStream_t stream) {
  check_grid("channel_affine", grid);
  for (const Span<const float>& s : {shift, scale, offset})
    check_span("channel_affine: a coefficient", s, grid.channels);
  if (grid.size() == 0) return;
  affine_kernel<T>
      <<<tiles_of(grid, kMapRows), kBlock, 0, stream>>>(y, x, residual, shift.data, scale.data, offset.data, grid, act);
  check_launch(stream);
}

template <class T>
void channel_grad(T* dx, const T* dy, const T* y, const T* x, Span<const float> shift, Span<const float> a,
                  Span<const float> p, Span<const float> q, ChannelGrid grid, cudaStream_t stream) {
  check_grid("channel_grad", grid);
  for (const Span<const float>& s : {shift, a, p, q}) check_span("channel_grad: a coefficient", s, grid.channels);
  if (grid.size() == 0) return;
  grad_kernel<T>
      <<<tiles_of(grid, kMapRows), kBlock, 0, stream>>>(dx, dy, y, x, shift.data, a.data, p.data, q.data, grid);
  check_launch(stream);
}

#define PAL_INSTANTIATE(T)                                                                                             \
  template void channel_sums<T>(Span<double>, Span<double>, const T*, Span<const double>, ChannelGrid, Scratch,        \
                                cudaStream_t);                                                                         \
  template void channel_affine<T>(T*, const T*, const T*, Span<const float>, Span<const float>, Span<const float>,     \
                                  ChannelGrid, Activation, cudaStream_t);                                              \
  template void channel_grad_sums<T>(Span<double>, Span<double>, T*, const T*, const T*, const T*, Span<const double>, \
                                     ChannelGrid, Scratch, cudaStream_t);                                              \
  template void channel_grad<T>(T*, const T*, const T*, const T*, Span<const float>, Span<const float>,                \
                                Span<const float>, Span<const float>, ChannelGrid, cudaStream_t);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(bf16)
#undef PAL_INSTANTIATE

}  // namespace pal::kernels::cuda
