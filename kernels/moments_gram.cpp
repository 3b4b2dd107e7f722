// moments on the CPU, Gram form: an n by n matrix instead of D by D, for batches of fewer rows than columns.
#include "kernels/moments.h"
#include "kernels/moments_impl.h"

namespace pal::kernels::cpu {
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
    const bool fp64 = options.accumulate == Accumulate::fp64;
    const int64_t forward =
        fp64 ? panel_elements<double>(n, dims) * sizeof(double) : panel_elements<T>(n, dims) * sizeof(T);
    const int64_t backward = (panel_elements<T>(n, n) + panel_elements<T>(dims, n)) * sizeof(T);
    panels = pieces.take<char>(std::max(forward, backward));  // first the one, then the other
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
      for (int64_t l = std::max<int64_t>(0, tile.x0 + r - tile.y0); l < tile.cols; ++l) {
        to[l] = static_cast<double>(s[l]) + (tile.first ? 0.0 : to[l]);
      }
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
                Span<const double> mean, int64_t begin, const MomentsOptions& options, Into into, Scratch scratch,
                Cpu cpu) {
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
  const auto& vec = vec_ops<T>(cpu.isa);
  const auto& wide = vec_ops<double>(cpu.isa);
  const double inverse = 1.0 / (n - 1.0), factor = 4 * options.covariance_weight * inverse;

  sum_rows(at.squares, at.partials, n, dims, cpu,
           [&](double* partial, int64_t i) { vec.add_squares(partial, z_all.row(i), mean.data, dims); });
  double variance = 0, diagonal = 0;
  for (int64_t k = 0; k < dims; ++k) {
    const double c = at.squares[k] * inverse;
    const VarianceTerm v = variance_of(c, n - 1.0, options);
    variance += v.value;
    diagonal += c * c;
    at.slopes[k] = v.slope - factor * c;
  }

  if (options.accumulate == Accumulate::fp64)
    gram_matrix<double>(at.gram, z_all, mean.data, at.panels, cpu);
  else
    gram_matrix<T>(at.gram, z_all, mean.data, at.panels, cpu);
  const MatrixView<T> weights(at.weights, n, n);
  parallel_for(cpu, n, 64, [&](int64_t row, int64_t end) {
    for (int64_t i = row; i < end; ++i) {
      const double* g = at.gram + i * n;
      at.values[i] = g[i] * g[i] + 2 * wide.dot(g + i + 1, g + i + 1, n - i - 1);
    }
    if (!out.data) return;
    write_mirrored(weights, row, end,
                   [&](int64_t i, int64_t j) { return static_cast<T>(factor * inverse * at.gram[i * n + j]); });
  });
  double square = 0;
  for (int64_t i = 0; i < n; ++i) square += at.values[i];
  if (variance_term) *variance_term = variance;
  if (covariance_term) *covariance_term = square * inverse * inverse - diagonal;
  if (!out.data) return;

  const Operand<T> own{MatrixView<const T>(at.weights + begin, n, out.rows, n), Lies::k_by_x};
  const Operand<T> rows{z_all, Lies::k_by_x, mean.data};
  panel_product(own, rows, Half::all, static_cast<T*>(at.panels), cpu, [&](const ProductTile<T>& tile) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      T* to = out.row(tile.x0 + r) + tile.y0;
      const T* s = tile.data + r * tile.stride;
      const T* z = z_all.row(begin + tile.x0 + r) + tile.y0;
      const double* m = mean.data + tile.y0;
      const double* slope = at.slopes + tile.y0;
      if (!tile.first) {
        for (int64_t l = 0; l < tile.cols; ++l) to[l] += s[l];
      } else {
        for (int64_t l = 0; l < tile.cols; ++l) {
          const T own_part = static_cast<T>(slope[l] * (static_cast<double>(z[l]) - m[l]));
          to[l] = s[l] + own_part + (into == Into::add ? to[l] : T{0});
        }
      }
    }
  });
}

#define PAL_INSTANTIATE(T)                                                                                       \
  template void gram_terms<T>(MatrixView<T>, double*, double*, MatrixView<const T>, Span<const double>, int64_t, \
                              const MomentsOptions&, Into, Scratch, Cpu);                                        \
  template int64_t gram_terms_scratch_bytes<T>(int64_t, int64_t, const MomentsOptions&);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(double)
#undef PAL_INSTANTIATE

}  // namespace pal::kernels::cpu
