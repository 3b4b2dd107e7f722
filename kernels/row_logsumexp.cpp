// row_logsumexp on the CPU: every row keeps a running maximum, and the sum of exponentials relative to it in fp64.
#include "kernels/row_logsumexp.h"

#include "kernels/row_logsumexp_squares.h"

namespace pal::kernels {

PAL_ISA_TABLES(row_logsumexp_ops, row_logsumexp, RowLogSumExpOps)

namespace cpu {
namespace {

template <class T>
struct Layout {
  ScratchPieces pieces;
  T* max;       // (padded rows)
  double* sum;  // (padded rows)
  Similarities<T> similarities;

  Layout(void* base, int64_t rows, int64_t columns, int64_t dims)
      : pieces(base),
        max(pieces.take<T>(padded<T>(rows))),
        sum(pieces.take<double>(padded<T>(rows))),
        similarities(pieces, rows, columns, dims) {}
};

}  // namespace

template <class T>
int64_t row_logsumexp_scratch_bytes(int64_t rows, int64_t columns, int64_t dims) {
  return Layout<T>(nullptr, rows, columns, dims).pieces.bytes();
}

template <class T>
void row_logsumexp(Span<double> lse, MatrixView<const T> rows, MatrixView<const T> columns, Span<const int64_t> self,
                   const RowLogSumExpOptions& options, Scratch scratch, Cpu cpu) {
  check_similarities("row_logsumexp", rows, columns, self, options, cpu);
  check_span("row_logsumexp: lse", lse, rows.rows);
  check_scratch("row_logsumexp", scratch, row_logsumexp_scratch_bytes<T>(rows.rows, columns.rows, rows.cols));
  const Layout<T> at(scratch.data, rows.rows, columns.rows, rows.cols);
  const RowLogSumExpOps<T>& ops = row_logsumexp_ops<T>(cpu.isa);
  const int64_t width = panel_ops<T>(cpu.isa).width;
  const T inverse = static_cast<T>(1 / options.temperature);
  std::fill_n(at.max, padded<T>(rows.rows), -std::numeric_limits<T>::infinity());
  std::fill_n(at.sum, padded<T>(rows.rows), 0.0);
  for_squares(rows, columns, self, at.similarities, cpu, [&](const Square<T>& square) {
    for (int64_t y = 0; y < square.row_panels; ++y) {
      const int64_t row = (square.row_panel + y) * width;
      ops.absorb(at.max + row, at.sum + row, square.data + y * square.stride, square.count, inverse);
    }
  });
  for (int64_t i = 0; i < rows.rows; ++i) {  // a sum of 0: no column was left, and the maximum is −∞
    lse[i] = at.sum[i] == 0 ? -std::numeric_limits<double>::infinity()
                            : static_cast<double>(at.max[i]) + std::log(at.sum[i]);
  }
}

#define PAL_INSTANTIATE(T)                                                                                    \
  template int64_t row_logsumexp_scratch_bytes<T>(int64_t, int64_t, int64_t);                                 \
  template void row_logsumexp<T>(Span<double>, MatrixView<const T>, MatrixView<const T>, Span<const int64_t>, \
                                 const RowLogSumExpOptions&, Scratch, Cpu);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(double)
#undef PAL_INSTANTIATE

}  // namespace cpu
}  // namespace pal::kernels
