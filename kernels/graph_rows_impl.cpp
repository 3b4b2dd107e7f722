// graph_rows_impl: the inner loops of graph_rows; compiled once per instruction set (PAL_ISA).
#include "kernels/graph_rows_impl.h"

#include "kernels/base/simd.h"
#include "kernels/base/vec.h"

namespace pal::kernels::PAL_ISA {
extern const VecOps<float> vec_float;
extern const VecOps<double> vec_double;

namespace {

enum class Form { sum, difference };

constexpr int64_t kRun = 32;            // partners added up in T before the sum is widened
constexpr int64_t kAhead = 4;           // partners ahead of the current one whose rows are prefetched
constexpr int kBlock = kRegisters / 4;  // vectors of a column block: the row, its sum and the loads stay in registers

constexpr int kLineVectors = 64 / kVectorBytes;

template <class T>
inline void add_wide(Vec<double>* total, Vec<T> v) {
  Vec<double> wide[kHalves<T>];
  widen(wide, v);
  for (int h = 0; h < kHalves<T>; ++h) total[h] += wide[h];
}

// The partner row to prefetch while j is processed: of this row, or of a later one.
template <class T>
inline const T* prefetched_row(const RowPartners<T>& row, int64_t j) {
  return row.partners + row.columns[j + kAhead < row.known ? j + kAhead : j] * row.stride;
}

template <class T>
inline void put(const RowSink<T>& sink, int64_t at, Vec<double> total) {
  if (sink.partial) store(sink.partial + at, total);
  if (!sink.out) return;
  const Vec<double> scaled = sink.scale * total;
  store_narrow(sink.out + at, sink.add ? load_wide(sink.out + at) + scaled : scaled);
}

// kVectors full vectors of columns; kTail: a single vector of which only `n` columns exist.
template <Form kForm, int kVectors, bool kTail, class T>
double column_block(const RowPartners<T>& row, const RowSink<T>& sink, int64_t begin, int64_t n) {
  constexpr int kWide = kVectors * kHalves<T>;
  const auto fetch = [n](const T* p) { return kTail ? load_n(p, n) : load(p); };
  const T* base = row.partners + begin;
  Vec<T> z[kVectors];
  for (int v = 0; v < kVectors; ++v) z[v] = fetch(row.z + begin + v * kLanes<T>);
  Vec<double> total[kWide] = {};
  Vec<double> value[kHalves<T>] = {};

  for (int64_t run = 0; run < row.count; run += kRun) {
    const int64_t end = run + kRun < row.count ? run + kRun : row.count;
    Vec<T> acc[kVectors] = {}, squares{};
    for (int64_t j = run; j < end; ++j) {
      const T* p = base + row.columns[j] * row.stride;
      const T* next = prefetched_row(row, j) + begin;
      for (int v = 0; v < kVectors; v += kLineVectors) __builtin_prefetch(next + v * kLanes<T>);
      const T w = row.weights[j];
      if constexpr (kForm == Form::sum) {
        for (int v = 0; v < kVectors; ++v) acc[v] += w * fetch(p + v * kLanes<T>);
      } else {
        Vec<T> square{};
        for (int v = 0; v < kVectors; ++v) {
          const Vec<T> d = z[v] - fetch(p + v * kLanes<T>);
          acc[v] += w * d;
          square += d * d;
        }
        squares += w * square;
      }
    }
    if constexpr (kForm == Form::difference) add_wide<T>(value, squares);
    for (int v = 0; v < kVectors; ++v) add_wide<T>(total + v * kHalves<T>, acc[v]);
  }

  for (int v = 0; v < kVectors; ++v) {
    Vec<double> z_wide[kHalves<T>];
    widen(z_wide, z[v]);
    for (int h = 0; h < kHalves<T>; ++h) {
      Vec<double>& t = total[v * kHalves<T> + h];
      if constexpr (kForm == Form::sum) value[h] += z_wide[h] * t;
      t += sink.shift * z_wide[h];
    }
  }
  if constexpr (kTail) {
    double lanes[kLanes<T>];
    __builtin_memcpy(lanes, total, sizeof lanes);
    for (int64_t k = 0; k < n; ++k) {
      if (sink.partial) sink.partial[begin + k] = lanes[k];
      if (!sink.out) continue;
      T& to = sink.out[begin + k];
      to = static_cast<T>(sink.add ? static_cast<double>(to) + sink.scale * lanes[k] : sink.scale * lanes[k]);
    }
  } else {
    for (int v = 0; v < kWide; ++v) put(sink, begin + v * kLanes<double>, total[v]);
  }
  double s = 0;
  for (int h = 0; h < kHalves<T>; ++h) s += sum(value[h]);
  return s;
}

// Where there are 16 registers a column block in them is so narrow that the time of a partner is too short to prefetch
// the next ones. There, whole blocks of 512 bytes keep their sums in the L1 cache.
template <class T>
constexpr int64_t kWideColumns = kRegisters == 32 ? 0 : 512 / static_cast<int64_t>(sizeof(T));
constexpr int kGroup = 4;  // vectors taken at once

template <Form kForm, class T>
double wide_block(const RowPartners<T>& row, const RowSink<T>& sink, int64_t begin) {
  constexpr int64_t kColumns = kWideColumns<T>;
  alignas(64) T acc[kColumns];
  alignas(64) double total[kColumns];
  const T* z = row.z + begin;
  for (int64_t k = 0; k < kColumns; k += kLanes<double>) store(total + k, Vec<double>{});
  Vec<double> value[kHalves<T>] = {};

  for (int64_t run = 0; run < row.count; run += kRun) {
    const int64_t end = run + kRun < row.count ? run + kRun : row.count;
    for (int64_t k = 0; k < kColumns; k += kLanes<T>) store(acc + k, Vec<T>{});
    Vec<T> squares{};
    for (int64_t j = run; j < end; ++j) {
      const T* p = row.partners + row.columns[j] * row.stride + begin;
      const T* next = prefetched_row(row, j) + begin;
      const T w = row.weights[j];
      Vec<T> square[kGroup] = {};
#pragma GCC unroll 1
      for (int64_t k = 0; k < kColumns; k += kGroup * kLanes<T>) {
        for (int v = 0; v < kGroup; v += kLineVectors) __builtin_prefetch(next + k + v * kLanes<T>);
        for (int v = 0; v < kGroup; ++v) {
          const int64_t at = k + v * kLanes<T>;
          if constexpr (kForm == Form::sum) {
            store(acc + at, load(acc + at) + w * load(p + at));
          } else {
            const Vec<T> d = load(z + at) - load(p + at);
            store(acc + at, load(acc + at) + w * d);
            square[v] += d * d;
          }
        }
      }
      if constexpr (kForm == Form::difference) squares += w * ((square[0] + square[1]) + (square[2] + square[3]));
    }
    if constexpr (kForm == Form::difference) add_wide<T>(value, squares);
    for (int64_t k = 0; k < kColumns; k += kLanes<double>) store(total + k, load(total + k) + load_wide(acc + k));
  }

  for (int64_t k = 0; k < kColumns; k += kLanes<double>) {
    Vec<double> t = load(total + k);
    if constexpr (kForm == Form::sum) {
      const Vec<double> z_wide = load_wide(z + k);
      value[0] += z_wide * t;
      t += sink.shift * z_wide;
    }
    put(sink, begin + k, t);
  }
  double s = 0;
  for (int h = 0; h < kHalves<T>; ++h) s += sum(value[h]);
  return s;
}

template <Form kForm, class T>
double gather(const RowPartners<T>& row, const RowSink<T>& sink) {
  constexpr int64_t kL = kLanes<T>;
  double value = 0;
  int64_t k = 0;
  if constexpr (kWideColumns < T >> 0) {
    for (; k + kWideColumns<T> <= row.dims; k += kWideColumns<T>) value += wide_block<kForm>(row, sink, k);
  }
  for (; k + kBlock * kL <= row.dims; k += kBlock * kL) value += column_block<kForm, kBlock, false>(row, sink, k, 0);
  if (k + kBlock / 2 * kL <= row.dims) {
    value += column_block<kForm, kBlock / 2, false>(row, sink, k, 0);
    k += kBlock / 2 * kL;
  }
  if (k + kBlock / 4 * kL <= row.dims) {
    value += column_block<kForm, kBlock / 4, false>(row, sink, k, 0);
    k += kBlock / 4 * kL;
  }
  for (; k + kL <= row.dims; k += kL) value += column_block<kForm, 1, false>(row, sink, k, 0);
  if (k < row.dims) value += column_block<kForm, 1, true>(row, sink, k, row.dims - k);
  return value;
}

template <class T>
double repulsion(T* coefficients, double* weight, const RowPartners<T>& row, const VecOps<T>& vec) {
  double value = 0, total = 0, unused, z_square, dot, square;
  vec.dot_and_square(&unused, &z_square, row.z, row.z, row.dims);
  for (int64_t j = 0; j < row.count; ++j) {
    if (j + 1 < row.count) {
      const T* next = row.partners + row.columns[j + 1] * row.stride;
      for (int64_t k = 0; k < row.dims; k += 64 / static_cast<int64_t>(sizeof(T))) __builtin_prefetch(next + k);
    }
    vec.dot_and_square(&dot, &square, row.z, row.partners + row.columns[j] * row.stride, row.dims);
    const double w = static_cast<double>(row.weights[j]);
    value += w * (dot * dot - z_square - square);
    total += w;
    coefficients[j] = static_cast<T>(w * dot);
  }
  *weight = total;
  return value;
}
double repulsion_float(float* c, double* w, const RowPartners<float>& row) { return repulsion(c, w, row, vec_float); }
double repulsion_double(double* c, double* w, const RowPartners<double>& row) {
  return repulsion(c, w, row, vec_double);
}

}  // namespace

extern const GraphRowsOps<float> graph_rows_float;
extern const GraphRowsOps<double> graph_rows_double;
constinit const GraphRowsOps<float> graph_rows_float = {gather<Form::sum, float>, gather<Form::difference, float>,
                                                        repulsion_float};
constinit const GraphRowsOps<double> graph_rows_double = {gather<Form::sum, double>, gather<Form::difference, double>,
                                                          repulsion_double};

}  // namespace pal::kernels::PAL_ISA
