// graph_rows on the CPU: threads take rows as they come; a row with much work is split into fixed tiles of partners.
#include "kernels/graph_rows.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/base/scratch.h"
#include "kernels/base/threads.h"
#include "kernels/graph_rows_impl.h"

namespace pal::kernels {

PAL_ISA_TABLES(graph_rows_ops, graph_rows, GraphRowsOps)

namespace cpu {
namespace {

// Work is counted in elements (partners · dims). These numbers decide the order of additions: they depend on the shapes
// only, never on the threads.
constexpr int64_t kHeavyRow = int64_t{1} << 20;  // a row with more is split: a fraction of a millisecond
constexpr int64_t kTileWork = int64_t{1} << 18;
constexpr int64_t kMaxTiles = 64;                 // of one row; bounds the scratch
constexpr int64_t kGrainWork = int64_t{1} << 16;  // of a piece that a thread takes at once
constexpr int64_t kMaxGrain = 64;

template <class T>
struct Layout {
  double* values;    // (rows) each row's share of the value
  double* partials;  // (kMaxTiles, dims) one row's tiles
  double* tile_values;
  T* coefficients;  // (nnz) of the repulsion
  int64_t bytes;

  Layout(void* base, int64_t rows, int64_t nnz, int64_t dims) {
    ScratchPieces pieces(base);
    values = pieces.take<double>(rows);
    partials = pieces.take<double>(kMaxTiles * dims);
    tile_values = pieces.take<double>(kMaxTiles);
    coefficients = pieces.take<T>(nnz);
    bytes = pieces.bytes();
  }
};

template <class T>
void check(const MatrixView<T>& out, const MatrixView<const T>& z, const MatrixView<const T>& partners,
           const CsrView<T>& s, Scratch scratch, Cpu cpu) {
  check_cpu("graph_rows", cpu);
  check_matrix("graph_rows: z", z, -1, z.cols);
  check_matrix("graph_rows: partners", partners, -1, z.cols);
  if (out.data) check_matrix("graph_rows: out", out, z.rows, z.cols);
  check_span("graph_rows: offsets of s", s.offsets, z.rows + 1);
  const int64_t nnz = s.columns.size;
  check_span("graph_rows: columns of s", s.columns, nnz);
  check_span("graph_rows: weights of s", s.weights, nnz);
  check_equal("graph_rows: s", "first offset", s.offsets[0], 0);
  check_equal("graph_rows: s", "last offset", s.offsets[z.rows], nnz);
  for (int64_t r = 0; r < z.rows; ++r) {
    PAL_CHECK(s.offsets[r] <= s.offsets[r + 1], "graph_rows: offsets of s fall after row", r, "give ascending offsets");
  }
  check_indices("graph_rows: columns of s", s.columns, 0, partners.rows, cpu.isa);
  check_finite("graph_rows: weights of s", s.weights, cpu.isa);
  check_scratch("graph_rows", scratch, graph_rows_scratch_bytes<T>(z.rows, nnz, z.cols));
}

// One call's arguments, so that the parts below read as sentences.
template <class T>
struct Call {
  MatrixView<T> out;
  MatrixView<const T> z, partners;
  const CsrView<T>& s;
  const GraphRowsOptions& options;
  const GraphRowsOps<T>& ops;
  const Layout<T>& at;

  // Partners [begin, end) of a row, counted in all of S.
  double piece(int64_t row, int64_t begin, int64_t end, RowSink<T> sink) const {
    RowPartners<T> p{z.row(row),  partners.data, partners.stride,       s.columns.data + begin, s.weights.data + begin,
                     end - begin, z.cols,        s.columns.size - begin};
    if (options.form == RowForm::difference) return ops.difference(p, sink);
    if (options.form == RowForm::sum) return ops.sum(p, sink);
    double weight = 0;
    const double value = ops.repulsion(at.coefficients + begin, &weight, p);
    p.weights = at.coefficients + begin;
    sink.shift = -weight;
    ops.sum(p, sink);
    return value;
  }
  RowSink<T> sink(int64_t row) const {
    if (!out.data) return {};
    return {out.row(row), nullptr, options.scale, 0.0, options.into == Into::add};
  }
  bool heavy(int64_t row) const { return (s.offsets[row + 1] - s.offsets[row]) * z.cols > kHeavyRow; }
  double heavy_row(int64_t row, Cpu cpu) const;
};

template <class T>
double Call<T>::heavy_row(int64_t row, Cpu cpu) const {
  const int64_t begin = s.offsets[row], count = s.offsets[row + 1] - begin, dims = z.cols;
  const int64_t wanted = std::clamp<int64_t>(count * dims / kTileWork, 1, std::min(kMaxTiles, count));
  const int64_t width = (count + wanted - 1) / wanted, tiles = (count + width - 1) / width;
  parallel_for(cpu, tiles, 1, [&](int64_t t, int64_t) {
    RowSink<T> sink;
    sink.partial = at.partials + t * dims;
    at.tile_values[t] = piece(row, begin + t * width, begin + std::min(count, (t + 1) * width), sink);
  });
  const auto& wide = vec_ops<double>(cpu.isa);
  const auto& vec = vec_ops<T>(cpu.isa);
  parallel_for(cpu, out.data ? dims : 0, 1024, [&](int64_t k, int64_t end) {
    for (int64_t t = 1; t < tiles; ++t) wide.add_wide(at.partials + k, at.partials + t * dims + k, end - k);
    const auto write = options.into == Into::add ? vec.scale_narrow_add : vec.scale_narrow;
    write(out.row(row) + k, options.scale, at.partials + k, end - k);
  });
  double value = 0;
  for (int64_t t = 0; t < tiles; ++t) value += at.tile_values[t];
  return value;
}

}  // namespace

template <class T>
int64_t graph_rows_scratch_bytes(int64_t rows, int64_t nnz, int64_t dims) {
  return Layout<T>(nullptr, rows, nnz, dims).bytes;
}

template <class T>
void graph_rows(MatrixView<T> out, double* value, MatrixView<const T> z, MatrixView<const T> partners,
                const CsrView<T>& s, const GraphRowsOptions& options, Scratch scratch, Cpu cpu) {
  check(out, z, partners, s, scratch, cpu);
  const Layout<T> at(scratch.data, z.rows, s.columns.size, z.cols);
  const Call<T> call{out, z, partners, s, options, graph_rows_ops<T>(cpu.isa), at};

  const int64_t row_work = std::max<int64_t>(1, s.columns.size * z.cols / std::max<int64_t>(1, z.rows));
  const int64_t grain = std::clamp<int64_t>(kGrainWork / row_work, 1, kMaxGrain);
  parallel_for(cpu, z.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (!call.heavy(r)) at.values[r] = call.piece(r, s.offsets[r], s.offsets[r + 1], call.sink(r));
    }
  });
  for (int64_t r = 0; r < z.rows; ++r) {
    if (call.heavy(r)) at.values[r] = call.heavy_row(r, cpu);
  }
  if (!value) return;
  *value = 0;
  for (int64_t r = 0; r < z.rows; ++r) *value += at.values[r];
}

#define PAL_INSTANTIATE(T)                                                                                         \
  template int64_t graph_rows_scratch_bytes<T>(int64_t, int64_t, int64_t);                                         \
  template void graph_rows<T>(MatrixView<T>, double*, MatrixView<const T>, MatrixView<const T>, const CsrView<T>&, \
                              const GraphRowsOptions&, Scratch, Cpu);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(double)
#undef PAL_INSTANTIATE

}  // namespace cpu
}  // namespace pal::kernels
