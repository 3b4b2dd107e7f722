// moments_impl: what the covariance form and the Gram form on the CPU share.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/base/check.h"
#include "kernels/base/panels.h"
#include "kernels/base/scratch.h"
#include "kernels/moments_variance.h"

namespace pal::kernels::cpu {

constexpr int64_t kMaxTiles = 64;  // of rows, in sums over them; bounds the scratch
constexpr int64_t kMinTileRows = 64;

inline int64_t row_tile(int64_t rows) { return std::max(kMinTileRows, (rows + kMaxTiles - 1) / kMaxTiles); }
inline int64_t row_tiles(int64_t rows) { return (rows + row_tile(rows) - 1) / row_tile(rows); }

// total_k = Σ_i of what add_row(partial, i) puts into partial_k; fixed tiles of rows, added up in their order.
template <class AddRow>
void sum_rows(double* total, double* partials, int64_t rows, int64_t dims, Cpu cpu, const AddRow& add_row) {
  const int64_t tiles = row_tiles(rows);
  parallel_for(cpu, rows, row_tile(rows), [&](int64_t begin, int64_t end) {
    double* partial = partials + begin / row_tile(rows) * dims;
    std::fill_n(partial, dims, 0.0);
    for (int64_t i = begin; i < end; ++i) add_row(partial, i);
  });
  const auto& wide = vec_ops<double>(cpu.isa);
  parallel_for(cpu, dims, 1024, [&](int64_t k, int64_t end) {
    std::fill(total + k, total + end, 0.0);
    for (int64_t t = 0; t < tiles; ++t) wide.add_wide(total + k, partials + t * dims + k, end - k);
  });
}

// Writes value(k, l) to (k, l) and (l, k) for k in [begin, end), l in [k, a.cols). The lower half goes through a small
// square: written straight, its columns would fight for the same cache lines when the stride is a power of two.
template <class T, class Value>
void write_mirrored(const MatrixView<T>& a, int64_t begin, int64_t end, const Value& value) {
  constexpr int64_t kSide = 64;
  T turned[kSide][kSide];
  for (int64_t k0 = begin; k0 < end; k0 += kSide) {
    const int64_t k1 = std::min(end, k0 + kSide);
    for (int64_t l0 = k0; l0 < a.cols; l0 += kSide) {
      const int64_t l1 = std::min(a.cols, l0 + kSide);
      for (int64_t k = k0; k < k1; ++k) {
        for (int64_t l = std::max(l0, k); l < l1; ++l) turned[l - l0][k - k0] = a.row(k)[l] = value(k, l);
      }
      for (int64_t l = l0; l < l1; ++l) std::copy_n(turned[l - l0], std::min(k1, l) - k0, a.row(l) + k0);
    }
  }
}

}  // namespace pal::kernels::cpu
