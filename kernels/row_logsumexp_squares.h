// row_logsumexp_squares: what log-sum-exp and its gradient on the CPU share: checks, and the walk over similarities.
//
// A task owns a block of rows and passes over the columns in order, one square of similarities at a time. A lane of the
// square is a row: nothing is summed across lanes, and the gradient's weights already lie as a packed operand.
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "kernels/base/check.h"
#include "kernels/base/panels.h"
#include "kernels/base/scratch.h"
#include "kernels/row_logsumexp.h"
#include "kernels/row_logsumexp_impl.h"

namespace pal::kernels::cpu {

// Panels of a square: columns down, rows across. How many rows share a task changes no bit of theirs.
constexpr int64_t kDown = 4, kAcross = 4;

// Size of n rows in whole panels of any instruction set.
template <class T>
int64_t padded(int64_t n) {
  return whole_panel_elements<T>(n, 1);
}

// Rows and columns, packed. Last in the scratch: where the columns are the rows, their part is not used.
template <class T>
struct Similarities {
  T* rows;
  T* columns;

  Similarities(ScratchPieces& pieces, int64_t n, int64_t count, int64_t dims)
      : rows(pieces.take<T>(whole_panel_elements<T>(n, dims))),
        columns(pieces.take<T>(whole_panel_elements<T>(count, dims))) {}
};

// rows_iᵀ columns_j of columns [column, column + count) and some panels of rows, from row_panel on; −∞ where j is i
// itself. Each panel lies as (count, width), `stride` after the one before.
template <class T>
struct Square {
  T* data;
  int64_t stride;
  int64_t row_panel, row_panels;
  int64_t column, count;
};

// Calls f(square) for all squares, those of a row from one thread and in the order of the columns.
template <class T, class F>
void for_squares(MatrixView<const T> rows, MatrixView<const T> columns, Span<const int64_t> self,
                 const Similarities<T>& at, Cpu cpu, const F& f) {
  const PanelOps<T>& ops = panel_ops<T>(cpu.isa);
  const int64_t width = ops.width, depth = rows.cols, row_panels = (rows.rows + width - 1) / width;
  pack_operand(at.rows, Operand<T>{rows, Lies::x_by_k}, 0, depth, cpu);
  const bool same = rows.data == columns.data && rows.rows == columns.rows && rows.stride == columns.stride;
  const T* packed_columns = same ? at.rows : at.columns;  // then the memory for the columns is never touched
  if (!same) pack_operand(at.columns, Operand<T>{columns, Lies::x_by_k}, 0, depth, cpu);
  // Few rows: smaller blocks, so that every thread has some.
  const int64_t across = std::clamp<int64_t>(row_panels / (2 * cpu.threads), 1, kAcross);
  parallel_for(cpu, row_panels, across, [&](int64_t panel, int64_t end) {
    alignas(64) T data[kDown * kMaxPanelWidth<T> * kAcross * kMaxPanelWidth<T>];
    const int64_t first = panel * width, last = std::min(rows.rows, end * width);
    for (int64_t j0 = 0; j0 < columns.rows; j0 += kDown * width) {
      const int64_t count = std::min(kDown * width, columns.rows - j0), down = (count + width - 1) / width;
      const int64_t stride = down * width * width;
      panel_block(data, packed_columns + j0 * depth, down, at.rows + first * depth, end - panel, depth, ops);
      for (int64_t i = first; i < last && self.size != 0; ++i) {
        const int64_t j = self[i] - j0;
        if (self[i] < 0 || j < 0 || j >= count) continue;
        data[(i - first) / width * stride + j * width + (i - first) % width] = -std::numeric_limits<T>::infinity();
      }
      f(Square<T>{data, stride, panel, end - panel, j0, count});
    }
  });
}

template <class T>
void check_similarities(const std::string& op, const MatrixView<const T>& rows, const MatrixView<const T>& columns,
                        Span<const int64_t> self, const RowLogSumExpOptions& options, Cpu cpu) {
  check_cpu(op.c_str(), cpu);
  check_matrix((op + ": rows").c_str(), rows, -1, rows.cols);
  check_matrix((op + ": columns").c_str(), columns, -1, rows.cols);
  PAL_CHECK(rows.cols >= 1, op + ": width of the rows", rows.cols, "give 1 or more");
  PAL_CHECK(std::isfinite(options.temperature) && options.temperature > 0, op + ": temperature", options.temperature,
            "give a number above 0");
  if (self.size == 0) return;
  check_span((op + ": self").c_str(), self, rows.rows);
  for (int64_t i = 0; i < self.size; ++i) {
    PAL_CHECK(self[i] >= -1 && self[i] < columns.rows, op + ": self[" + std::to_string(i) + "]", self[i],
              "give a column below " + std::to_string(columns.rows) + ", or -1 for none");
  }
}

}  // namespace pal::kernels::cpu
