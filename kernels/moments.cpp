// moments on the CPU: the mean is taken off while panels are packed; products are those of base/panels.h.
#include "kernels/moments.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/check.h"
#include "kernels/base/panels.h"

namespace pal::kernels::cpu {
namespace {

constexpr int64_t kMaxTiles = 64;     // of rows, in sums over them; bounds the scratch
constexpr int64_t kMinTileRows = 64;

int64_t row_tile(int64_t rows) { return std::max(kMinTileRows, (rows + kMaxTiles - 1) / kMaxTiles); }
int64_t row_tiles(int64_t rows) { return (rows + row_tile(rows) - 1) / row_tile(rows); }

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

// One variance C_kk: its share of the term, and A_kk.
struct VarianceTerm {
  double value, slope;
};
VarianceTerm variance_of(double c, int64_t n, const MomentsOptions& o) {
  if (o.variance == Variance::squared) return {(1 - c) * (1 - c), -4 * o.variance_weight * (1 - c) / (n - 1.0)};
  const double deviation = std::sqrt(c + o.epsilon);
  if (!(deviation < o.gamma)) return {std::isnan(c) ? c : 0.0, 0.0};
  return {o.gamma - deviation, -o.variance_weight / (deviation * (n - 1.0))};
}

template <class T>
constexpr bool kIsDouble = sizeof(T) == sizeof(double);

void check_options(const char* op, const MomentsOptions& o) {
  PAL_CHECK(std::isfinite(o.gamma) && o.gamma >= 0, std::string(op) + ": gamma", o.gamma, "give 0 or more");
  PAL_CHECK(std::isfinite(o.epsilon) && o.epsilon >= 0, std::string(op) + ": epsilon", o.epsilon, "give 0 or more");
  PAL_CHECK(std::isfinite(o.variance_weight), std::string(op) + ": variance_weight", o.variance_weight, "give a number");
  PAL_CHECK(std::isfinite(o.covariance_weight), std::string(op) + ": covariance_weight", o.covariance_weight, "give a number");
}

void check_rows(const char* op, int64_t n) {
  PAL_CHECK(n >= 2, std::string(op) + ": n", n, "a covariance needs at least two rows");
}

}  // namespace

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
  sum_rows(sums.data, static_cast<double*>(scratch.data), z.rows, z.cols, cpu,
           [&](double* partial, int64_t i) { vec.add_wide(partial, z.row(i), z.cols); });
}

template <class T>
int64_t centred_second_moment_scratch_bytes(int64_t rows, int64_t dims, const MomentsOptions& options) {
  const int64_t bytes = options.accumulate == Accumulate::fp64 ? sizeof(double) : sizeof(T);
  return panel_elements(dims, rows) * bytes;
}

namespace {

template <class C, class T>
void second_moment(Span<double> packed, MatrixView<const T> z, const double* mean, Scratch scratch, Cpu cpu) {
  const int64_t dims = z.cols;
  const Operand<T> rows{z, Lies::k_by_x, mean};
  panel_product(rows, rows, Half::upper, static_cast<C*>(scratch.data), cpu, [&](const ProductTile<C>& tile) {
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
void centred_second_moment(Span<double> packed, MatrixView<const T> z, Span<const double> mean,
                           const MomentsOptions& options, Scratch scratch, Cpu cpu) {
  check_cpu("centred_second_moment", cpu);
  check_matrix("centred_second_moment: z", z, -1, z.cols);
  check_span("centred_second_moment: mean", mean, z.cols);
  check_span("centred_second_moment: packed", packed, packed_size(z.cols));
  check_scratch("centred_second_moment", scratch, centred_second_moment_scratch_bytes<T>(z.rows, z.cols, options));
  if (z.rows == 0) std::fill_n(packed.data, packed.size, 0.0);
  if (options.accumulate == Accumulate::fp64) second_moment<double>(packed, z, mean.data, scratch, cpu);
  else second_moment<T>(packed, z, mean.data, scratch, cpu);
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
  constexpr int64_t kBands = 256, kSide = 64;
  const int64_t band = std::max(kSide, (dims + kBands - 1) / kBands);
  double variances[kBands] = {}, squares[kBands] = {};
  const double inverse = 1.0 / (n - 1.0), factor = 4 * options.covariance_weight * inverse * inverse;
  const auto& wide = vec_ops<double>(cpu.isa);
  parallel_for(cpu, dims, band, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const double* row = packed.data + packed_index(k, k, dims);
      const VarianceTerm v = variance_of(row[0] * inverse, n, options);
      variances[begin / band] += v.value;
      squares[begin / band] += wide.dot(row + 1, row + 1, dims - k - 1);
      if (a.data) a.row(k)[k] = static_cast<T>(v.slope);
    }
    for (int64_t l0 = begin; a.data && l0 < dims; l0 += kSide) {  // both sides of the diagonal, in squares
      const int64_t l1 = std::min(dims, l0 + kSide);
      for (int64_t k = begin; k < end; ++k) {
        const double* row = packed.data + packed_index(k, k, dims) - k;
        for (int64_t l = std::max(l0, k + 1); l < l1; ++l) {
          const T v = static_cast<T>(factor * row[l]);
          a.row(k)[l] = v;
          a.row(l)[k] = v;
        }
      }
    }
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
int64_t centred_product_scratch_bytes(int64_t rows, int64_t dims) {
  return (panel_elements(rows, dims) + panel_elements(dims, dims)) * static_cast<int64_t>(sizeof(T));
}

template <class T>
void centred_product(MatrixView<T> out, MatrixView<const T> z, Span<const double> mean, MatrixView<const T> a, Into into,
                     Scratch scratch, Cpu cpu) {
  check_cpu("centred_product", cpu);
  check_matrix("centred_product: z", z, -1, z.cols);
  check_matrix("centred_product: out", out, z.rows, z.cols);
  check_matrix("centred_product: a", a, z.cols, z.cols);
  check_span("centred_product: mean", mean, z.cols);
  check_scratch("centred_product", scratch, centred_product_scratch_bytes<T>(z.rows, z.cols));
  const Operand<T> rows{z, Lies::x_by_k, mean.data}, right{a, Lies::k_by_x};
  panel_product(rows, right, Half::all, static_cast<T*>(scratch.data), cpu, [&](const ProductTile<T>& tile) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      T* to = out.row(tile.x0 + r) + tile.y0;
      const T* s = tile.data + r * tile.stride;
      if (tile.first && into == Into::overwrite) std::copy_n(s, tile.cols, to);
      else for (int64_t l = 0; l < tile.cols; ++l) to[l] += s[l];
    }
  });
}

namespace {

template <class T>
struct GramLayout {
  double* partials;  // (tiles, D)
  double* squares;   // (D) Σ (z_k − m_k)²
  double* slopes;    // (D) what multiplies z_ik − m_k itself
  double* gram;      // (n, n), upper half
  double* values;    // (n) each row's share of ‖Gram‖²
  T* weights;        // (n, n) gradient weights
  void* panels;
  int64_t bytes;

  GramLayout(void* base, int64_t n, int64_t dims, const MomentsOptions& options) {
    ScratchPieces pieces(base);
    partials = pieces.take<double>(row_tiles(n) * dims);
    squares = pieces.take<double>(dims);
    slopes = pieces.take<double>(dims);
    gram = pieces.take<double>(n * n);
    values = pieces.take<double>(n);
    weights = pieces.take<T>(n * n);
    const int64_t forward = panel_elements(n, dims) * (options.accumulate == Accumulate::fp64 ? sizeof(double) : sizeof(T));
    const int64_t backward = (panel_elements(n, n) + panel_elements(dims, n)) * sizeof(T);
    panels = pieces.take<char>(std::max(forward, backward));
    bytes = pieces.bytes();
  }
};

template <class C, class T>
void gram_matrix(double* gram, MatrixView<const T> z, const double* mean, void* panels, Cpu cpu) {
  const int64_t n = z.rows;
  const Operand<T> rows{z, Lies::x_by_k, mean};
  panel_product(rows, rows, Half::upper, static_cast<C*>(panels), cpu, [&](const ProductTile<C>& tile) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      double* to = gram + (tile.x0 + r) * n + tile.y0;
      const C* s = tile.data + r * tile.stride;
      for (int64_t l = 0; l < tile.cols; ++l) to[l] = static_cast<double>(s[l]) + (tile.first ? 0.0 : to[l]);
    }
  });
}

}  // namespace

template <class T>
int64_t gram_terms_scratch_bytes(int64_t n, int64_t dims, const MomentsOptions& options) {
  return GramLayout<T>(nullptr, n, dims, options).bytes;
}

template <class T>
void gram_terms(MatrixView<T> out, double* variance_term, double* covariance_term, MatrixView<const T> z_all,
                Span<const double> mean, int64_t begin, const MomentsOptions& options, Into into, Scratch scratch, Cpu cpu) {
  const int64_t n = z_all.rows, dims = z_all.cols;
  check_cpu("gram_terms", cpu);
  check_rows("gram_terms", n);
  check_options("gram_terms", options);
  check_matrix("gram_terms: z_all", z_all, n, dims);
  if (out.data) check_matrix("gram_terms: out", out, -1, dims);
  check_span("gram_terms: mean", mean, dims);
  PAL_CHECK(begin >= 0 && begin + out.rows <= n, "gram_terms: begin", begin, "the own rows must lie in z_all");
  check_scratch("gram_terms", scratch, gram_terms_scratch_bytes<T>(n, dims, options));
  const GramLayout<T> at(scratch.data, n, dims, options);
  const auto& wide = vec_ops<double>(cpu.isa);
  const double inverse = 1.0 / (n - 1.0), factor = 4 * options.covariance_weight * inverse;

  sum_rows(at.squares, at.partials, n, dims, cpu, [&](double* partial, int64_t i) {
    const T* z = z_all.row(i);
    for (int64_t k = 0; k < dims; ++k) {
      const double d = static_cast<double>(z[k]) - mean[k];
      partial[k] += d * d;
    }
  });
  double variance = 0, diagonal = 0;
  for (int64_t k = 0; k < dims; ++k) {
    const double c = at.squares[k] * inverse;
    const VarianceTerm v = variance_of(c, n, options);
    variance += v.value;
    diagonal += c * c;
    at.slopes[k] = v.slope - factor * c;
  }

  if (options.accumulate == Accumulate::fp64) gram_matrix<double>(at.gram, z_all, mean.data, at.panels, cpu);
  else gram_matrix<T>(at.gram, z_all, mean.data, at.panels, cpu);
  parallel_for(cpu, n, 16, [&](int64_t row, int64_t end) {
    for (int64_t i = row; i < end; ++i) {
      const double* g = at.gram + i * n;
      at.values[i] = g[i] * g[i] + 2 * wide.dot(g + i + 1, g + i + 1, n - i - 1);
      for (int64_t j = i; j < n; ++j) {
        const T w = static_cast<T>(factor * inverse * g[j]);
        at.weights[i * n + j] = w;
        at.weights[j * n + i] = w;
      }
    }
  });
  double square = 0;
  for (int64_t i = 0; i < n; ++i) square += at.values[i];
  if (variance_term) *variance_term = variance;
  if (covariance_term) *covariance_term = square * inverse * inverse - diagonal;
  if (!out.data) return;

  const Operand<T> weights{MatrixView<const T>(at.weights + begin, n, out.rows, n), Lies::k_by_x};
  const Operand<T> rows{z_all, Lies::k_by_x, mean.data};
  panel_product(weights, rows, Half::all, static_cast<T*>(at.panels), cpu, [&](const ProductTile<T>& tile) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      T* to = out.row(tile.x0 + r) + tile.y0;
      const T* s = tile.data + r * tile.stride;
      const T* z = z_all.row(begin + tile.x0 + r) + tile.y0;
      const double* m = mean.data + tile.y0;
      const double* slope = at.slopes + tile.y0;
      if (!tile.first) {
        for (int64_t l = 0; l < tile.cols; ++l) to[l] += s[l];
      } else {
        const T keep = into == Into::add ? T{1} : T{0};
        for (int64_t l = 0; l < tile.cols; ++l) {
          to[l] = s[l] + static_cast<T>(slope[l] * (static_cast<double>(z[l]) - m[l])) + (keep != T{0} ? to[l] : T{0});
        }
      }
    }
  });
}

#define PAL_INSTANTIATE(T)                                                                                           \
  template void column_sums<T>(Span<double>, MatrixView<const T>, Scratch, Cpu);                                      \
  template void centred_second_moment<T>(Span<double>, MatrixView<const T>, Span<const double>, const MomentsOptions&, \
                                         Scratch, Cpu);                                                               \
  template int64_t centred_second_moment_scratch_bytes<T>(int64_t, int64_t, const MomentsOptions&);                   \
  template void covariance_terms<T>(MatrixView<T>, double*, double*, Span<const double>, int64_t,                     \
                                    const MomentsOptions&, Cpu);                                                      \
  template void centred_product<T>(MatrixView<T>, MatrixView<const T>, Span<const double>, MatrixView<const T>, Into, \
                                   Scratch, Cpu);                                                                     \
  template int64_t centred_product_scratch_bytes<T>(int64_t, int64_t);                                                \
  template void gram_terms<T>(MatrixView<T>, double*, double*, MatrixView<const T>, Span<const double>, int64_t,      \
                              const MomentsOptions&, Into, Scratch, Cpu);                                             \
  template int64_t gram_terms_scratch_bytes<T>(int64_t, int64_t, const MomentsOptions&);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(double)
#undef PAL_INSTANTIATE

}  // namespace pal::kernels::cpu
