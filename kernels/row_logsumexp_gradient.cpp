// row_logsumexp_gradient on the CPU: similarities are computed again, turned into weights where they lie, and
// multiplied with the columns.
#include "kernels/row_logsumexp_squares.h"

namespace pal::kernels::cpu {
namespace {

// e^{x − lse} = e^{x − level} · e^{level − lse}: the level is lse in T; what it lacks goes into the weight.
template <class T>
struct Weights {
  T* level;
  T* weight;  // degree · e^{level − lse}

  Weights(ScratchPieces& pieces, int64_t n)
      : level(pieces.take<T>(padded<T>(n))), weight(pieces.take<T>(padded<T>(n))) {}
  void set(const LogSumExpTerms& terms) const {
    const int64_t n = terms.lse.size;
    for (int64_t i = 0; i < padded<T>(n); ++i) {
      // Beyond the end, or nothing to weigh: a level that makes every exponential 0.
      const bool none = i >= n || terms.lse[i] == -std::numeric_limits<double>::infinity();
      level[i] = none ? std::numeric_limits<T>::max() : static_cast<T>(terms.lse[i]);
      weight[i] =
          none ? T{0} : static_cast<T>(terms.degrees[i] * std::exp(static_cast<double>(level[i]) - terms.lse[i]));
    }
  }
};

template <class T>
struct Layout {
  ScratchPieces pieces;
  T* columns;  // packed for the product with the weights
  T* sums;     // (padded rows, padded D), in squares of a panel's width
  Weights<T> of_rows, of_columns;
  Similarities<T> similarities;

  Layout(void* base, int64_t n, int64_t count, int64_t dims)
      : pieces(base),
        columns(pieces.take<T>(whole_panel_elements<T>(dims, count))),
        sums(pieces.take<T>(padded<T>(n) * padded<T>(dims))),
        of_rows(pieces, n),
        of_columns(pieces, count),
        similarities(pieces, n, count, dims) {}
};

void check_terms(const std::string& name, const LogSumExpTerms& terms, int64_t size, Isa isa) {
  check_span((name + ": lse").c_str(), terms.lse, size);
  check_span((name + ": degrees").c_str(), terms.degrees, size);
  check_finite((name + ": degrees").c_str(), terms.degrees, isa);
}

}  // namespace

template <class T>
int64_t row_logsumexp_gradient_scratch_bytes(int64_t rows, int64_t columns, int64_t dims) {
  return Layout<T>(nullptr, rows, columns, dims).pieces.bytes();
}

template <class T>
void row_logsumexp_gradient(MatrixView<T> out, MatrixView<const T> rows, MatrixView<const T> columns,
                            Span<const int64_t> self, const LogSumExpTerms& row_terms,
                            const LogSumExpTerms& column_terms, const RowLogSumExpOptions& options, Scratch scratch,
                            Cpu cpu) {
  const std::string op = "row_logsumexp_gradient";
  const int64_t n = rows.rows, count = columns.rows, dims = rows.cols;
  const bool constant = column_terms.lse.size == 0 && column_terms.degrees.size == 0;
  check_similarities(op, rows, columns, self, options, cpu);
  check_matrix((op + ": out").c_str(), out, n, dims);
  check_terms(op + ": row_terms", row_terms, n, cpu.isa);
  if (!constant) check_terms(op + ": column_terms", column_terms, count, cpu.isa);
  PAL_CHECK(std::isfinite(options.scale), op + ": scale", options.scale, "it must be a finite number");
  check_scratch(op.c_str(), scratch, row_logsumexp_gradient_scratch_bytes<T>(n, count, dims));

  const Layout<T> at(scratch.data, n, count, dims);
  const RowLogSumExpOps<T>& ops = row_logsumexp_ops<T>(cpu.isa);
  const PanelOps<T>& panels = panel_ops<T>(cpu.isa);
  const int64_t width = panels.width, across = (dims + width - 1) / width;
  const T inverse = static_cast<T>(1 / options.temperature);
  at.of_rows.set(row_terms);
  if (!constant) at.of_columns.set(column_terms);
  pack_operand(at.columns, Operand<T>{columns, Lies::k_by_x}, 0, count, cpu);
  std::fill_n(at.sums, padded<T>(n) * padded<T>(dims), T{0});

  for_squares(rows, columns, self, at.similarities, cpu, [&](const Square<T>& square) {
    for (int64_t y = 0; y < square.row_panels; ++y) {
      const int64_t row = (square.row_panel + y) * width;
      ops.weigh(square.data + y * square.stride, square.count, inverse, at.of_rows.weight + row, at.of_rows.level + row,
                constant ? nullptr : at.of_columns.weight + square.column, at.of_columns.level + square.column);
    }
    for (int64_t x = 0; x < across; ++x) {
      for (int64_t y = 0; y < square.row_panels; ++y) {
        panels.tile_add(at.sums + ((square.row_panel + y) * across + x) * width * width, width,
                        square.data + y * square.stride, at.columns + (x * count + square.column) * width,
                        square.count);
      }
    }
  });

  const double scale = options.scale / options.temperature;
  parallel_for(cpu, n, width, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t d = 0; d < dims; ++d) {
        const T sum = at.sums[((begin / width * across + d / width) * width + (i - begin)) * width + d % width];
        const double term = scale * static_cast<double>(sum);
        out.row(i)[d] = static_cast<T>(options.into == Into::add ? static_cast<double>(out.row(i)[d]) + term : term);
      }
    }
  });
}

#define PAL_INSTANTIATE(T)                                                                                   \
  template int64_t row_logsumexp_gradient_scratch_bytes<T>(int64_t, int64_t, int64_t);                       \
  template void row_logsumexp_gradient<T>(MatrixView<T>, MatrixView<const T>, MatrixView<const T>,           \
                                          Span<const int64_t>, const LogSumExpTerms&, const LogSumExpTerms&, \
                                          const RowLogSumExpOptions&, Scratch, Cpu);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(double)
#undef PAL_INSTANTIATE

}  // namespace pal::kernels::cpu
