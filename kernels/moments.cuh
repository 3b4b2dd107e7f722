// moments.cuh: what the two CUDA files of moments share: loaders, column sums, the upper triangle of a product.
#pragma once

#include "kernels/base/scratch.h"
#include "kernels/base/sum.h"
#include "kernels/base/tile_product.cuh"
#include "kernels/moments_variance.h"

namespace pal::kernels::cuda {

// Place of (k, l), k <= l, in the packed triangle; packed_index for the device.
__device__ inline int64_t packed_place(int64_t k, int64_t l, int64_t size) {
  return k * size - k * (k - 1) / 2 + (l - k);
}

// ---- loaders: z − mean, element (row, column) ----
template <class T>
struct Centered {
  const T* z;
  int64_t stride;
  const double* mean;
  int64_t rows, columns;
  __device__ double at(int64_t row, int64_t column) const {
    return row < rows && column < columns ? static_cast<double>(to_float(z[row * stride + column])) - mean[column]
                                          : 0.0;
  }
};
template <class T>
Centered<T> centered(MatrixView<const T> z, Span<const double> mean) {
  return {z.data, z.stride, mean.data, z.rows, z.cols};
}
// k runs over rows, i over columns from `first`.
template <class T>
struct ColumnsOf {
  static constexpr bool kAlongK = false;
  Centered<T> z;
  int64_t first;
  __device__ double operator()(int64_t k, int i) const { return z.at(k, first + i); }
};
// k runs over columns, i over rows from `first`.
template <class T>
struct RowsOf {
  static constexpr bool kAlongK = true;
  Centered<T> z;
  int64_t first;
  __device__ double operator()(int64_t k, int i) const { return z.at(first + i, k); }
};

// ---- sums over rows: Σ z or Σ (z − mean)² per column, in fp64 ----
enum class ColumnForm { sum, centered_square };
constexpr int64_t kRowTile = 512;

template <class T, ColumnForm form>
__global__ void columns_kernel(double* parts, Centered<T> z) {
  constexpr int kLanes = 8;
  __shared__ double lanes[kLanes][kWarp];
  const int x = threadIdx.x % kWarp, lane = threadIdx.x / kWarp;
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kWarp + x;
  const int64_t begin = blockIdx.y * kRowTile, end = min(begin + kRowTile, z.rows);
  double total = 0;
  if (c < z.columns) {
    for (int64_t row = begin + lane; row < end; row += kLanes) {
      const double v = form == ColumnForm::sum ? static_cast<double>(to_float(z.z[row * z.stride + c])) : z.at(row, c);
      total += form == ColumnForm::sum ? v : v * v;
    }
  }
  lanes[lane][x] = total;
  __syncthreads();
  if (lane != 0 || c >= z.columns) return;
  for (int l = 1; l < kLanes; ++l) total += lanes[l][x];
  parts[blockIdx.y * z.columns + c] = total;
}

// out = Σ over the parts (parts, size), in order.
static __global__ void add_parts_kernel(double* out, const double* parts, int64_t count, int64_t size) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= size) return;
  double total = 0;
  for (int64_t p = 0; p < count; ++p) total += parts[p * size + i];
  out[i] = total;
}
inline void add_parts(double* out, const double* parts, int64_t count, int64_t size, cudaStream_t stream) {
  add_parts_kernel<<<static_cast<unsigned>(ceil_div(size, 256)), 256, 0, stream>>>(out, parts, count, size);
  check_launch(stream);
}

// parts: (ceil(rows / kRowTile), columns).
template <ColumnForm form, class T>
void columns(double* out, const Centered<T>& z, double* parts, cudaStream_t stream) {
  const int64_t tiles = ceil_div(z.rows, kRowTile);
  const dim3 grid(static_cast<unsigned>(ceil_div(z.columns, kWarp)), static_cast<unsigned>(tiles));
  columns_kernel<T, form><<<grid, 256, 0, stream>>>(parts, z);
  check_launch(stream);
  add_parts(out, parts, tiles, z.columns, stream);
}

// ---- the upper triangle of Σ_k x(k, i) x(k, j), i and j in [0, size), k in [0, depth) ----
// Few tiles are split over k, so that they fill a device; the number of splits is a function of the shape alone.
struct Triangle {
  int64_t size, depth, tiles, splits, each;
  Triangle(int64_t size, int64_t depth) : size(size), depth(depth), tiles(ceil_div(size, kSide)) {
    const int64_t blocks = tiles * (tiles + 1) / 2, most = ceil_div(depth, 256);
    splits = 512 / blocks;
    if (splits > most) splits = most;
    if (splits < 1) splits = 1;
    each = ceil_div(ceil_div(depth, splits), kSlab) * kSlab;
  }
  int64_t packed() const { return size * (size + 1) / 2; }
};

// parts (splits, packed). A block per tile (i, j), i <= j, and split.
template <class Product, class Loader>
__global__ void __launch_bounds__(kTileThreads, 2) triangle_kernel(double* parts, Loader x, Triangle t) {
  if (blockIdx.x < blockIdx.y) return;
  const int64_t i0 = blockIdx.y * kSide, j0 = static_cast<int64_t>(blockIdx.x) * kSide;
  const int64_t begin = blockIdx.z * t.each, end = min(begin + t.each, t.depth);
  Loader a = x, b = x;
  a.first = i0;
  b.first = j0;
  double total[kEach][kEach] = {};
  tile_product<Product>(total, a, b, begin, end);
  double* part = parts + blockIdx.z * (t.size * (t.size + 1) / 2);
  for_own(total, [&](int i, int j, double v) {
    if (i0 + i <= j0 + j && j0 + j < t.size) part[packed_place(i0 + i, j0 + j, t.size)] = v;
  });
}
template <class Loader>
void triangle(double* parts, const Loader& x, const Triangle& t, Accumulate accumulate, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(t.tiles), static_cast<unsigned>(t.tiles), static_cast<unsigned>(t.splits));
  if (accumulate == Accumulate::fp64)
    triangle_kernel<double><<<grid, kTileThreads, 0, stream>>>(parts, x, t);
  else
    triangle_kernel<float><<<grid, kTileThreads, 0, stream>>>(parts, x, t);
  check_launch(stream);
}

// Both terms of an empty z; either may be null.
inline void zero_terms(double* variance_term, double* covariance_term, cudaStream_t stream) {
  if (variance_term) PAL_CUDA_CHECK(cudaMemsetAsync(variance_term, 0, sizeof(double), stream));
  if (covariance_term) PAL_CUDA_CHECK(cudaMemsetAsync(covariance_term, 0, sizeof(double), stream));
}

}  // namespace pal::kernels::cuda
