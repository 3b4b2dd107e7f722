// csr on the CPU: two counting passes and a merge, O(pairs + rows), without a comparison sort, so that one row with a
// million partners costs no more than a million rows with one. One thread: the passes are bound by memory latency and
// take about a millisecond for a batch's pairs.
#include "kernels/csr.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/check.h"
#include "kernels/base/scratch.h"

namespace pal::kernels::cpu {
namespace {

template <class T>
struct Layout {
  int64_t* cursor;    // (rows + 1) where a row's next entry goes
  int32_t* columns;   // (2 pairs) entries by row, in the order given
  T* weights;         // (2 pairs)
  int64_t bytes;

  Layout(void* base, int64_t rows, int64_t pairs) {
    ScratchPieces pieces(base);
    cursor = pieces.take<int64_t>(rows + 1);
    columns = pieces.take<int32_t>(2 * pairs);
    weights = pieces.take<T>(2 * pairs);
    bytes = pieces.bytes();
  }
};

template <class T>
void check(const CsrOut<T>& out, const PairsView<T>& pairs, int64_t rows, Scratch scratch, Cpu cpu) {
  const int64_t count = pairs.i.size, room = csr_capacity(count);
  check_cpu("csr", cpu);
  PAL_CHECK(rows >= 0 && rows <= std::numeric_limits<int32_t>::max(), "csr: rows", rows, "give 0 to 2^31 - 1");
  check_span("csr: i", pairs.i, count);
  check_span("csr: j", pairs.j, count);
  if (pairs.w.size != 0) check_span("csr: w", pairs.w, count);
  check_span("csr: offsets", out.offsets, rows + 1);
  check_span("csr: degrees", out.degrees, rows);
  PAL_CHECK(out.columns.size >= room, "csr: room for columns", out.columns.size, "give " + std::to_string(room));
  PAL_CHECK(out.weights.size >= room, "csr: room for weights", out.weights.size, "give " + std::to_string(room));
  PAL_CHECK(out.nnz != nullptr, "csr: nnz", "null", "give a place for it");
  check_indices("csr: i", pairs.i, 0, rows, cpu.isa);
  check_indices("csr: j", pairs.j, 0, rows, cpu.isa);
  check_finite("csr: w", pairs.w, cpu.isa);
  check_scratch("csr", scratch, csr_scratch_bytes<T>(rows, count));
}

// offsets[r] = where row r begins when repeated pairs are not merged yet.
void count_rows(Span<int64_t> offsets, Span<const int32_t> i, Span<const int32_t> j) {
  std::fill_n(offsets.data, offsets.size, int64_t{0});
  for (int64_t p = 0; p < i.size; ++p) {
    ++offsets[i[p] + 1];
    if (i[p] != j[p]) ++offsets[j[p] + 1];
  }
  for (int64_t r = 1; r < offsets.size; ++r) offsets[r] += offsets[r - 1];
}

// Adds up the repeated columns of every row in place; what is written never overtakes what is read.
template <class T>
void merge(const CsrOut<T>& out, int64_t rows) {
  int64_t read = 0, write = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t end = out.offsets[r + 1];
    double degree = 0;
    while (read < end) {
      const int32_t column = out.columns[read];
      double total = 0;
      for (; read < end && out.columns[read] == column; ++read) total += static_cast<double>(out.weights[read]);
      const T weight = static_cast<T>(total);
      out.columns[write] = column;
      out.weights[write++] = weight;
      degree += std::abs(static_cast<double>(weight));
    }
    out.degrees[r] = static_cast<T>(degree);
    out.offsets[r + 1] = write;
  }
  *out.nnz = write;
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
  count_rows(out.offsets, pairs.i, pairs.j);

  // By row, in the order given.
  std::copy_n(out.offsets.data, rows + 1, at.cursor);
  for (int64_t p = 0; p < pairs.i.size; ++p) {
    const int32_t i = pairs.i[p], j = pairs.j[p];
    const T w = pairs.w.size ? pairs.w[p] : T{1};
    at.columns[at.cursor[i]] = j;
    at.weights[at.cursor[i]++] = w;
    if (i == j) continue;
    at.columns[at.cursor[j]] = i;
    at.weights[at.cursor[j]++] = w;
  }
  // The transpose of a symmetric matrix is itself, with the columns of each row in ascending order.
  std::copy_n(out.offsets.data, rows + 1, at.cursor);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t e = out.offsets[r]; e < out.offsets[r + 1]; ++e) {
      const int64_t to = at.cursor[at.columns[e]]++;
      out.columns[to] = static_cast<int32_t>(r);
      out.weights[to] = at.weights[e];
    }
  }
  merge(out, rows);
}

template int64_t csr_scratch_bytes<float>(int64_t, int64_t);
template int64_t csr_scratch_bytes<double>(int64_t, int64_t);
template void csr<float>(const CsrOut<float>&, const PairsView<float>&, int64_t, Scratch, Cpu);
template void csr<double>(const CsrOut<double>&, const PairsView<double>&, int64_t, Scratch, Cpu);

}  // namespace pal::kernels::cpu
