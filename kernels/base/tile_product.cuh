// tile_product: a block's 64 × 64 tile of Σ_k a(k, i) b(k, j), through shared memory; the .cu files' matrix product.
//
// a and b are loaders: `double or float operator()(int64_t k, int i)` gives an element (0 outside the matrix);
// kAlongK is true where neighbors in k are neighbors in memory. Loaders also center, convert and transpose.
// Order: k ascends; the sums do not depend on the device.
#pragma once

#include <type_traits>

#include "kernels/base/device.cuh"

namespace pal::kernels::cuda {

constexpr int kSide = 64;
constexpr int kDepth = 16;
constexpr int kTileThreads = 256;
constexpr int kEach = kSide / 16;      // a thread owns rows y + 16 p and columns x + 16 q of the tile
constexpr int64_t kSlab = 8 * kDepth;  // fp32 products are moved to the sums after as many k

// Loaders of a matrix as it lies; `first` is the row or column that i counts from.
template <class T>
struct RowsFrom {  // k runs over columns, i over rows
  static constexpr bool kAlongK = true;
  MatrixView<const T> m;
  int64_t first;
  __device__ auto operator()(int64_t k, int i) const {
    return first + i < m.rows ? to_number(m.data[(first + i) * m.stride + k]) : decltype(to_number(T{}))(0);
  }
};
template <class T>
struct ColumnsFrom {  // k runs over rows, i over columns
  static constexpr bool kAlongK = false;
  MatrixView<const T> m;
  int64_t first;
  __device__ auto operator()(int64_t k, int i) const {
    return first + i < m.cols ? to_number(m.data[k * m.stride + first + i]) : decltype(to_number(T{}))(0);
  }
};

// What two elements add to their sum.
struct Multiply {
  template <class T>
  __device__ T operator()(T sum, T a, T b) const {
    return sum + a * b;
  }
};
struct SquaredDifference {
  template <class T>
  __device__ T operator()(T sum, T a, T b) const {
    return sum + (a - b) * (a - b);
  }
};

template <class Product>
using SharedTile = Product[kDepth][kSide + 1];

template <class Product, class Loader>
__device__ void load_tile(SharedTile<Product>& tile, const Loader& loader, int64_t k0, int64_t k_end) {
  for (int n = threadIdx.x; n < kSide * kDepth; n += kTileThreads) {
    const int k = Loader::kAlongK ? n % kDepth : n / kSide;
    const int i = Loader::kAlongK ? n / kDepth : n % kSide;
    tile[k][i] = k0 + k < k_end ? static_cast<Product>(loader(k0 + k, i)) : Product{0};
  }
}

// part += Σ over k in [k_begin, k_end). All 256 threads must call.
template <class Product, class A, class B, class Combine>
__device__ void add_products(Product (&part)[kEach][kEach], const A& a, const B& b, int64_t k_begin, int64_t k_end,
                             const Combine& combine) {
  __shared__ SharedTile<Product> a_tile, b_tile;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  for (int64_t k0 = k_begin; k0 < k_end; k0 += kDepth) {
    __syncthreads();  // the former tile is used up
    load_tile<Product>(a_tile, a, k0, k_end);
    load_tile<Product>(b_tile, b, k0, k_end);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      Product left[kEach], right[kEach];
#pragma unroll
      for (int p = 0; p < kEach; ++p) left[p] = a_tile[k][y + 16 * p];
#pragma unroll
      for (int q = 0; q < kEach; ++q) right[q] = b_tile[k][x + 16 * q];
#pragma unroll
      for (int p = 0; p < kEach; ++p) {
#pragma unroll
        for (int q = 0; q < kEach; ++q) part[p][q] = combine(part[p][q], left[p], right[q]);
      }
    }
  }
}

// total += Σ over k in [k_begin, k_end). fp32 products are added slab by slab. All 256 threads must call.
template <class Product, class Sum, class A, class B, class Combine = Multiply>
__device__ void tile_product(Sum (&total)[kEach][kEach], const A& a, const B& b, int64_t k_begin, int64_t k_end,
                             const Combine& combine = {}) {
  if constexpr (std::is_same_v<Product, double>) {
    add_products(total, a, b, k_begin, k_end, combine);
  } else {
    for (int64_t slab = k_begin; slab < k_end; slab += kSlab) {
      Product part[kEach][kEach] = {};
      add_products(part, a, b, slab, min(slab + kSlab, k_end), combine);
#pragma unroll
      for (int p = 0; p < kEach; ++p) {
#pragma unroll
        for (int q = 0; q < kEach; ++q) total[p][q] += part[p][q];
      }
    }
  }
}

// Calls f(i, j, total) for the elements that this thread owns.
template <class Sum, class F>
__device__ void for_own(const Sum (&total)[kEach][kEach], const F& f) {
#pragma unroll
  for (int p = 0; p < kEach; ++p) {
#pragma unroll
    for (int q = 0; q < kEach; ++q)
      f(static_cast<int>(threadIdx.x) / 16 + 16 * p, static_cast<int>(threadIdx.x) % 16 + 16 * q, total[p][q]);
  }
}

}  // namespace pal::kernels::cuda
