// csr on the CPU: two counting sorts and a merge, O(pairs + rows), without a comparison sort, so that one row with a
// million partners costs no more than a million rows with one. Each thread sorts its own piece; the position of an
// entry does not depend on the number of pieces.
#include "kernels/csr.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/base/scratch.h"
#include "kernels/base/threads.h"
#include "kernels/csr_check.h"

namespace pal::kernels::cpu {
namespace {

constexpr int64_t kMaxPieces = 4;           // bounds the scratch
constexpr int64_t kPieceEntries = 1 << 14;  // fewer do not pay for a thread

template <class T>
struct Layout {
  int64_t* cursor;   // (kMaxPieces, rows) where a row's next entry of a piece goes
  int64_t* offsets;  // (rows + 1)
  int32_t* columns;  // (2 pairs) entries by row, in the order given
  T* weights;        // (2 pairs)
  int64_t bytes;

  Layout(void* base, int64_t rows, int64_t pairs) {
    ScratchPieces pieces(base);
    cursor = pieces.take<int64_t>(kMaxPieces * rows);
    offsets = pieces.take<int64_t>(rows + 1);
    columns = pieces.take<int32_t>(2 * pairs);
    weights = pieces.take<T>(2 * pairs);
    bytes = pieces.bytes();
  }
};

template <class T>
void check(const CsrOut<T>& out, const PairsView<T>& pairs, int64_t rows, Scratch scratch, Cpu cpu) {
  check_cpu("csr", cpu);
  detail::check_csr(out, pairs, rows);
  check_indices("csr: i", pairs.i, 0, rows, cpu.isa);
  check_indices("csr: j", pairs.j, 0, rows, cpu.isa);
  check_finite("csr: w", pairs.w, cpu.isa);
  check_scratch("csr", scratch, csr_scratch_bytes<T>(rows, pairs.i.size));
}

// Entries in the order of their rows; those of one row stay in the order that the pieces have them in.
// visit(p, f) calls f(row, column, weight) for every entry of piece p.
template <class T, class Visit>
void sort_by_row(Span<int64_t> offsets, int32_t* columns, T* weights, int64_t* cursor, int64_t pieces, Cpu cpu,
                 const Visit& visit) {
  const int64_t rows = offsets.size - 1;
  parallel_for(cpu, pieces, 1, [&](int64_t p, int64_t) {
    int64_t* count = cursor + p * rows;
    std::fill_n(count, rows, int64_t{0});
    visit(p, [&](int32_t row, int32_t, T) { ++count[row]; });
  });
  int64_t next = 0;
  for (int64_t r = 0; r < rows; ++r) {
    offsets[r] = next;
    for (int64_t p = 0; p < pieces; ++p) next += std::exchange(cursor[p * rows + r], next);
  }
  offsets[rows] = next;
  parallel_for(cpu, pieces, 1, [&](int64_t p, int64_t) {
    int64_t* place = cursor + p * rows;
    visit(p, [&](int32_t row, int32_t column, T weight) {
      const int64_t to = place[row]++;
      columns[to] = column;
      weights[to] = weight;
    });
  });
}

// Adds up the repeated columns of a row in place; returns how many are left.
template <class T>
int64_t merge_row(int32_t* columns, T* weights, int64_t count, T* degree) {
  int64_t read = 0, write = 0;
  double absolute = 0;
  while (read < count) {
    const int32_t column = columns[read];
    double total = 0;
    for (; read < count && columns[read] == column; ++read) total += static_cast<double>(weights[read]);
    const T weight = static_cast<T>(total);
    columns[write] = column;
    weights[write++] = weight;
    absolute += std::abs(static_cast<double>(weight));
  }
  *degree = static_cast<T>(absolute);
  return write;
}

// Merges every row, then closes the gaps; left (rows).
template <class T>
void merge(const CsrOut<T>& out, int64_t* left, int64_t rows, Cpu cpu) {
  parallel_for(cpu, rows, 512, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = out.offsets[r];
      left[r] = merge_row(out.columns.data + at, out.weights.data + at, out.offsets[r + 1] - at, &out.degrees[r]);
    }
  });
  int64_t write = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = std::exchange(out.offsets[r], write);
    if (at != write) {
      std::copy_n(out.columns.data + at, left[r], out.columns.data + write);
      std::copy_n(out.weights.data + at, left[r], out.weights.data + write);
    }
    write += left[r];
  }
  out.offsets[rows] = *out.nnz = write;
}

}  // namespace

template <class T>
int64_t csr_scratch_bytes(int64_t rows, int64_t pairs) {
  return Layout<T>(nullptr, rows, pairs).bytes;
}

template <class T>
void csr(const CsrOut<T>& out, const PairsView<T>& pairs, int64_t rows, Scratch scratch, Cpu cpu) {
  check(out, pairs, rows, scratch, cpu);
  const Layout<T> at(scratch.data, rows, pairs.i.size);
  const int64_t count = pairs.i.size;
  const int64_t pieces = std::clamp<int64_t>(2 * count / kPieceEntries, 1, std::min<int64_t>(kMaxPieces, cpu.threads));

  sort_by_row<T>(out.offsets, at.columns, at.weights, at.cursor, pieces, cpu, [&](int64_t piece, const auto& f) {
    for (int64_t p = count * piece / pieces; p < count * (piece + 1) / pieces; ++p) {
      const int32_t i = pairs.i[p], j = pairs.j[p];
      const T w = pairs.w.size ? pairs.w[p] : T{1};
      f(i, j, w);
      if (i != j) f(j, i, w);
    }
  });
  // The transpose of a symmetric matrix is itself, with the columns of each row in ascending order.
  std::copy_n(out.offsets.data, rows + 1, at.offsets);
  const int64_t entries = at.offsets[rows];
  const auto first_row = [&](int64_t piece) {
    return std::lower_bound(at.offsets, at.offsets + rows, entries * piece / pieces) - at.offsets;
  };
  sort_by_row<T>(out.offsets, out.columns.data, out.weights.data, at.cursor, pieces, cpu,
                 [&](int64_t piece, const auto& f) {
                   const int64_t end = piece + 1 == pieces ? rows : first_row(piece + 1);
                   for (int64_t r = first_row(piece); r < end; ++r) {
                     for (int64_t e = at.offsets[r]; e < at.offsets[r + 1]; ++e)
                       f(at.columns[e], static_cast<int32_t>(r), at.weights[e]);
                   }
                 });
  merge(out, at.cursor, rows, cpu);
}

template int64_t csr_scratch_bytes<float>(int64_t, int64_t);
template int64_t csr_scratch_bytes<double>(int64_t, int64_t);
template void csr<float>(const CsrOut<float>&, const PairsView<float>&, int64_t, Scratch, Cpu);
template void csr<double>(const CsrOut<double>&, const PairsView<double>&, int64_t, Scratch, Cpu);

}  // namespace pal::kernels::cpu
