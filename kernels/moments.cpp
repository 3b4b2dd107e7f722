// moments on the CPU: the mean is taken off while panels are packed; products are those of base/panels.h.
#include "kernels/moments.h"

#include "kernels/moments_impl.h"

namespace pal::kernels::cpu {

int64_t column_sums_scratch_bytes(int64_t rows, int64_t dims) {
  ScratchPieces pieces(nullptr);
  pieces.take<double>(row_tiles(rows) * dims);
  return pieces.bytes();
}

template <class T>
void column_sums(Span<double> sums, MatrixView<const T> z, Scratch scratch, Cpu cpu) {
  check_cpu("column_sums", cpu);
  check_matrix("column_sums: z", z, -1, z.cols);
  check_span("column_sums: sums", sums, z.cols);
  check_scratch("column_sums", scratch, column_sums_scratch_bytes(z.rows, z.cols));
  const auto& vec = vec_ops<T>(cpu.isa);
  sum_rows(sums.data, ScratchPieces(scratch.data).take<double>(row_tiles(z.rows) * z.cols), z.rows, z.cols, cpu,
           [&](double* partial, int64_t i) { vec.add_wide(partial, z.row(i), z.cols); });
}

template <class T>
int64_t centered_second_moment_scratch_bytes(int64_t rows, int64_t dims, const MomentsOptions& options) {
  ScratchPieces pieces(nullptr);
  if (options.accumulate == Accumulate::fp64)
    pieces.take<double>(panel_elements<double>(dims, rows));
  else
    pieces.take<T>(panel_elements<T>(dims, rows));
  return pieces.bytes();
}

namespace {

template <class C, class T>
void second_moment(Span<double> packed, MatrixView<const T> z, const double* mean, Scratch scratch, Cpu cpu) {
  const int64_t dims = z.cols;
  const Operand<T> rows{z, Lies::k_by_x, mean};
  C* panels = ScratchPieces(scratch.data).take<C>(panel_elements<C>(dims, z.rows));
  panel_product(rows, rows, Half::upper, panels, cpu, [&](const ProductTile<C>& tile) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      const int64_t k = tile.x0 + r, from = std::max(k, tile.y0), count = tile.y0 + tile.cols - from;
      if (count <= 0) continue;
      double* to = packed.data + packed_index(k, from, dims);
      const C* s = tile.data + r * tile.stride + (from - tile.y0);
      if (tile.first) {
        for (int64_t l = 0; l < count; ++l) to[l] = static_cast<double>(s[l]);
      } else {
        for (int64_t l = 0; l < count; ++l) to[l] += static_cast<double>(s[l]);
      }
    }
  });
}

}  // namespace

template <class T>
void centered_second_moment(Span<double> packed, MatrixView<const T> z, Span<const double> mean,
                            const MomentsOptions& options, Scratch scratch, Cpu cpu) {
  check_cpu("centered_second_moment", cpu);
  check_matrix("centered_second_moment: z", z, -1, z.cols);
  check_span("centered_second_moment: mean", mean, z.cols);
  check_span("centered_second_moment: packed", packed, packed_size(z.cols));
  check_scratch("centered_second_moment", scratch, centered_second_moment_scratch_bytes<T>(z.rows, z.cols, options));
  if (z.rows == 0) std::fill_n(packed.data, packed.size, 0.0);
  if (options.accumulate == Accumulate::fp64)
    second_moment<double>(packed, z, mean.data, scratch, cpu);
  else
    second_moment<T>(packed, z, mean.data, scratch, cpu);
}

template <class T>
void covariance_terms(MatrixView<T> a, double* variance_term, double* covariance_term, Span<const double> packed,
                      int64_t n, const MomentsOptions& options, Cpu cpu) {
  const int64_t dims = a.data ? a.cols : static_cast<int64_t>((std::sqrt(8.0 * packed.size + 1) - 1) / 2 + 0.5);
  check_cpu("covariance_terms", cpu);
  check_rows("covariance_terms", n);
  check_options("covariance_terms", options);
  check_span("covariance_terms: packed", packed, packed_size(dims));
  if (a.data) check_matrix("covariance_terms: a", a, dims, dims);

  // Bands of the triangle; the number of them is fixed, so that their sums fit here and are added in their order.
  constexpr int64_t kBands = 256;
  const int64_t band = std::max<int64_t>(64, (dims + kBands - 1) / kBands);
  double variances[kBands] = {}, squares[kBands] = {};
  const double inverse = 1.0 / (n - 1.0), factor = 4 * options.covariance_weight * inverse * inverse;
  const auto& wide = vec_ops<double>(cpu.isa);
  parallel_for(cpu, dims, band, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const double* row = packed.data + packed_index(k, k, dims);
      variances[begin / band] += variance_of(row[0] * inverse, n - 1.0, options).value;
      squares[begin / band] += wide.dot(row + 1, row + 1, dims - k - 1);
    }
    if (!a.data) return;
    write_mirrored(a, begin, end, [&](int64_t k, int64_t l) {
      const double s = packed[packed_index(k, l, dims)];
      return static_cast<T>(k == l ? variance_of(s * inverse, n - 1.0, options).slope : factor * s);
    });
  });
  double variance = 0, square = 0;
  for (int64_t b = 0; b < kBands; ++b) {
    variance += variances[b];
    square += squares[b];
  }
  if (variance_term) *variance_term = variance;
  if (covariance_term) *covariance_term = 2 * square * inverse * inverse;
}

template <class T>
int64_t centered_product_scratch_bytes(int64_t rows, int64_t dims) {
  ScratchPieces pieces(nullptr);
  pieces.take<T>(panel_elements<T>(rows, dims) + panel_elements<T>(dims, dims));
  return pieces.bytes();
}

template <class T>
void centered_product(MatrixView<T> out, MatrixView<const T> z, Span<const double> mean, MatrixView<const T> a,
                      Into into, Scratch scratch, Cpu cpu) {
  check_cpu("centered_product", cpu);
  check_matrix("centered_product: z", z, -1, z.cols);
  check_matrix("centered_product: out", out, z.rows, z.cols);
  check_matrix("centered_product: a", a, z.cols, z.cols);
  check_span("centered_product: mean", mean, z.cols);
  check_scratch("centered_product", scratch, centered_product_scratch_bytes<T>(z.rows, z.cols));
  const Operand<T> rows{z, Lies::x_by_k, mean.data}, right{a, Lies::k_by_x};
  T* panels =
      ScratchPieces(scratch.data).take<T>(panel_elements<T>(z.rows, z.cols) + panel_elements<T>(z.cols, z.cols));
  panel_product(rows, right, Half::all, panels, cpu, [&](const ProductTile<T>& tile) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      T* to = out.row(tile.x0 + r) + tile.y0;
      const T* s = tile.data + r * tile.stride;
      if (tile.first && into == Into::overwrite) {
        std::copy_n(s, tile.cols, to);
      } else {
        for (int64_t l = 0; l < tile.cols; ++l) to[l] += s[l];
      }
    }
  });
}

#define PAL_INSTANTIATE(T)                                                                                             \
  template void column_sums<T>(Span<double>, MatrixView<const T>, Scratch, Cpu);                                       \
  template void centered_second_moment<T>(Span<double>, MatrixView<const T>, Span<const double>,                       \
                                          const MomentsOptions&, Scratch, Cpu);                                        \
  template int64_t centered_second_moment_scratch_bytes<T>(int64_t, int64_t, const MomentsOptions&);                   \
  template void covariance_terms<T>(MatrixView<T>, double*, double*, Span<const double>, int64_t,                      \
                                    const MomentsOptions&, Cpu);                                                       \
  template void centered_product<T>(MatrixView<T>, MatrixView<const T>, Span<const double>, MatrixView<const T>, Into, \
                                    Scratch, Cpu);                                                                     \
  template int64_t centered_product_scratch_bytes<T>(int64_t, int64_t);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(double)
#undef PAL_INSTANTIATE

}  // namespace pal::kernels::cpu
