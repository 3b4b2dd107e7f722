// graph_rows on CUDA: a warp walks the partners of one row over a chunk of its columns, which it keeps in registers.
//
// A row with more than kTile partners is split at fixed places, the multiples of kTile in the list of entries, and a
// second kernel adds the parts in order. A tile of entries has at most two such rows: the one that holds its first
// entry and the one that holds its last; so every tile has two slots for partial rows.
// repulsion needs all of z_iᵀp_j before it can use any of it. Rows of one chunk still have the partner in registers
// then; wider ones take two passes: the products first, then the rows as a weighted sum.
#include "kernels/base/device.cuh"
#include "kernels/base/scratch.h"
#include "kernels/base/sum.h"
#include "kernels/graph_rows.h"

namespace pal::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int64_t kTile = 1024;
constexpr int64_t kNarrow = 128;  // columns of a chunk when all fit; else
constexpr int64_t kWide = 512;
constexpr int64_t kLimit = int64_t{1} << 31;

enum class Walk { sum, difference, repulsion, repulsion_weighted };  // the last: with the products of a pass before

struct Layout {
  int64_t tiles, chunks, items, groups;
  double* values;  // (max(items · chunks, groups)) what each warp adds to the value
  double* sum_partials;
  float* coefficients;  // (nnz) S_ij z_iᵀp_j, of repulsion
  float* parts;         // (2 · tiles, dims)
  int64_t bytes;

  Layout(void* base, int64_t rows, int64_t nnz, int64_t dims)
      : tiles(nnz > kTile ? ceil_div(nnz, kTile) : 0),
        chunks(ceil_div(dims, dims <= kNarrow ? kNarrow : kWide)),
        items(rows + 2 * tiles),
        groups(ceil_div(nnz, kWarp)) {
    ScratchPieces pieces(base);
    const int64_t most = items * chunks > groups ? items * chunks : groups;
    values = pieces.take<double>(most);
    sum_partials = pieces.take<double>(kernels::cuda::sum_partials(most));
    coefficients = pieces.take<float>(nnz);
    parts = pieces.take<float>(2 * tiles * dims);
    bytes = pieces.bytes();
  }
};

template <class T>
struct Args {
  MatrixView<T> out;
  MatrixView<const T> z, partners;
  const int64_t* offsets;
  const int32_t* columns;
  const float* weights;
  const float* coefficients;
  float* parts;
  double* values;  // null: no value asked for
  int64_t rows, items, nnz;
  int dims, chunks;
  float scale;
  Into into;
};

// The row whose entries hold e.
__device__ int64_t row_of(const int64_t* offsets, int64_t rows, int64_t e) {
  int64_t low = 0, high = rows - 1;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (offsets[middle] <= e)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// Columns first + (k · 32 + lane) · P + q of a row; zero beyond its end.
template <class T, int P, int ITEMS>
__device__ void load(float (&x)[ITEMS][P], const T* row, int first, int dims) {
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const int c = first + (k * kWarp + threadIdx.x % kWarp) * P;
    Pack<T, P> pack{};
    if (c < dims) pack = *reinterpret_cast<const Pack<T, P>*>(row + c);
#pragma unroll
    for (int q = 0; q < P; ++q) x[k][q] = to_float(pack.v[q]);
  }
}

// sum += the entries [begin, end) of row i over this chunk. Returns this lane's share of the value.
template <class T, Walk form, int P, int ITEMS>
__device__ double walk(float (&sum)[ITEMS][P], const Args<T>& a, int64_t i, int64_t begin, int64_t end, int first) {
  constexpr bool kWholeRow = form == Walk::repulsion;  // this warp has all columns
  const int lane = threadIdx.x % kWarp;
  const T* z_row = a.z.data + i * a.z.stride;
  float zi[ITEMS][P];
  if (form == Walk::difference || kWholeRow) load(zi, z_row, first, a.dims);
  double value = 0;
  float own = 0;       // Σ_j S_ij of repulsion
  float z_square = 0;  // of this lane's columns
  if (kWholeRow) {
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
#pragma unroll
      for (int q = 0; q < P; ++q) z_square += zi[k][q] * zi[k][q];
    }
  }
  for (int64_t e = begin; e < end; e += kWarp) {
    const int count = static_cast<int>(min(static_cast<int64_t>(kWarp), end - e));
    const int32_t my_column = lane < count ? a.columns[e + lane] : 0;
    const float my_weight =
        lane < count ? (form == Walk::repulsion_weighted ? a.coefficients : a.weights)[e + lane] : 0;
    if (form == Walk::repulsion_weighted) own += warp_sum(lane < count ? a.weights[e + lane] : 0.0f);
    if (kWholeRow) own += warp_sum(my_weight);
#pragma unroll(kWholeRow ? 1 : 2)
    for (int t = 0; t < count; ++t) {
      const int64_t j = __shfl_sync(kAllLanes, my_column, t);
      const float w = __shfl_sync(kAllLanes, my_weight, t);
      PAL_DEVICE_CHECK(j >= 0 && j < a.partners.rows);
      float p[ITEMS][P];
      load(p, a.partners.data + j * a.partners.stride, first, a.dims);
      float square = 0, factor = w;
      if (kWholeRow) {
        float dot = 0;
#pragma unroll
        for (int k = 0; k < ITEMS; ++k) {
#pragma unroll
          for (int q = 0; q < P; ++q) {
            dot += zi[k][q] * p[k][q];
            square += p[k][q] * p[k][q];
          }
        }
        dot = warp_sum(dot);
        factor = w * dot;
        value += static_cast<double>(w) * ((lane == 0 ? static_cast<double>(dot) * dot : 0.0) - z_square - square);
      }
#pragma unroll
      for (int k = 0; k < ITEMS; ++k) {
#pragma unroll
        for (int q = 0; q < P; ++q) {
          if (form == Walk::difference) {
            const float d = zi[k][q] - p[k][q];
            sum[k][q] += w * d;
            square += d * d;
          } else {
            sum[k][q] += factor * p[k][q];
          }
        }
      }
      if (form == Walk::difference) value += static_cast<double>(w) * square;
    }
  }
  if (form == Walk::difference) return value;
  if (!kWholeRow) load(zi, z_row, first, a.dims);  // only now: in the loop the registers are dear
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
#pragma unroll
    for (int q = 0; q < P; ++q) {
      if (form == Walk::sum)
        value += static_cast<double>(zi[k][q]) * sum[k][q];
      else
        sum[k][q] -= own * zi[k][q];
    }
  }
  return value;
}

// A warp per (item, chunk). Items: the rows, then two parts for every tile of entries.
template <class T, Walk form, int P, int ITEMS>
__global__ void __launch_bounds__(kThreads, 2) rows_kernel(const Args<T> a) {
  const int64_t work = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  const int64_t item = work / a.chunks;
  const int first = static_cast<int>(work % a.chunks) * (kWarp * P * ITEMS);
  if (item >= a.items) return;
  const int lane = threadIdx.x % kWarp;

  int64_t i = item, begin = 0, end = 0;
  bool mine;
  const int64_t slot = item - a.rows;
  if (slot < 0) {
    begin = a.offsets[i];
    end = a.offsets[i + 1];
    PAL_DEVICE_CHECK(begin >= 0 && begin <= end && end <= a.nnz);
    mine = end - begin <= kTile;
  } else {
    const int64_t tile = slot / 2 * kTile, stop = min(tile + kTile, a.offsets[a.rows]);
    mine = tile < stop;
    if (mine) {
      i = row_of(a.offsets, a.rows, slot % 2 == 0 ? tile : stop - 1);
      const int64_t row_begin = a.offsets[i], row_end = a.offsets[i + 1];
      mine = row_end - row_begin > kTile && (slot % 2 == 0 || row_begin > tile);
      begin = max(row_begin, tile);
      end = min(row_end, stop);
    }
  }
  double value = 0;
  if (mine) {
    float sum[ITEMS][P] = {};
    value = walk<T, form>(sum, a, i, begin, end, first);
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      const int c = first + (k * kWarp + lane) * P;
      if (c >= a.dims) continue;
      if (slot >= 0) {
#pragma unroll
        for (int q = 0; q < P; ++q) a.parts[slot * a.dims + c + q] = sum[k][q];
      } else if (a.out.data != nullptr) {
        auto* to = reinterpret_cast<Pack<T, P>*>(a.out.data + i * a.out.stride + c);
        Pack<T, P> pack{};
        if (a.into == Into::add) pack = *to;
#pragma unroll
        for (int q = 0; q < P; ++q) pack.v[q] = from_float<T>(to_float(pack.v[q]) + a.scale * sum[k][q]);
        *to = pack;
      }
    }
  }
  if (a.values == nullptr || form == Walk::repulsion_weighted) return;
  value = warp_sum(value);
  if (lane == 0) a.values[work] = value;
}

// Long rows: the parts of a row, in order. A block per (row, 256 columns).
template <class T>
__global__ void combine_kernel(const Args<T> a) {
  const int64_t i = blockIdx.x, c = static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  const int64_t begin = a.offsets[i], end = a.offsets[i + 1];
  if (end - begin <= kTile || c >= a.dims) return;
  float total = 0;
  for (int64_t t = begin / kTile; t * kTile < end; ++t) {
    const int64_t slot = 2 * t + (begin <= t * kTile ? 0 : 1);
    total += a.parts[slot * a.dims + c];
  }
  T* to = a.out.data + i * a.out.stride + c;
  *to = from_float<T>((a.into == Into::add ? to_float(*to) : 0.0f) + a.scale * total);
}

// repulsion of rows wider than a chunk: coefficients and value. A warp per 32 entries, whatever rows they lie in;
// columns over the lanes.
template <class T>
__global__ void __launch_bounds__(kThreads, 2) products_kernel(float* coefficients, const Args<T> a, int64_t groups) {
  const int64_t group = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (group >= groups) return;
  const int lane = threadIdx.x % kWarp;
  const int64_t begin = group * kWarp, end = min(begin + kWarp, a.offsets[a.rows]);
  double value = 0;
  int64_t i = begin < end ? row_of(a.offsets, a.rows, begin) : 0;
  for (int64_t e = begin; e < end; ++e) {
    while (e >= a.offsets[i + 1]) ++i;
    const int64_t j = a.columns[e];
    PAL_DEVICE_CHECK(j >= 0 && j < a.partners.rows);
    const T* zi = a.z.data + i * a.z.stride;
    const T* pj = a.partners.data + j * a.partners.stride;
    float dot = 0, squares = 0;
    for (int c = lane; c < a.dims; c += kWarp) {
      const float x = to_float(zi[c]), y = to_float(pj[c]);
      dot += x * y;
      squares += x * x + y * y;
    }
    dot = warp_sum(dot);
    squares = warp_sum(squares);
    const float w = a.weights[e];
    if (lane == 0) coefficients[e] = w * dot;
    value += static_cast<double>(w) * (static_cast<double>(dot) * dot - squares);
  }
  if (a.values != nullptr && lane == 0) a.values[group] = value;
}

template <class T, Walk form>
void launch_rows(const Args<T>& a, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(ceil_div(a.items * a.chunks, kWarps));
  constexpr int P = kPack<T>;
  const bool packed = packs(a.out) && packs(a.z) && packs(a.partners);
  if (a.dims > kNarrow && packed)
    rows_kernel<T, form, P, kWide / kWarp / P><<<blocks, kThreads, 0, stream>>>(a);
  else if (a.dims > kNarrow)
    rows_kernel<T, form, 1, kWide / kWarp><<<blocks, kThreads, 0, stream>>>(a);
  else if (packed)
    rows_kernel<T, form, P, 1><<<blocks, kThreads, 0, stream>>>(a);
  else
    rows_kernel<T, form, 1, kNarrow / kWarp><<<blocks, kThreads, 0, stream>>>(a);
  check_launch(stream);
}

}  // namespace

template <class T>
int64_t graph_rows_scratch_bytes(int64_t rows, int64_t nnz, int64_t dims) {
  return Layout(nullptr, rows, nnz, dims).bytes;
}

template <class T>
void graph_rows(MatrixView<T> out, double* value, MatrixView<const T> z, MatrixView<const T> partners,
                const CsrView<float>& s, const GraphRowsOptions& options, Scratch scratch, cudaStream_t stream) {
  const int64_t rows = z.rows, dims = z.cols, nnz = s.columns.size;
  check_matrix("graph_rows: z", z, rows, dims);
  check_matrix("graph_rows: partners", partners, -1, dims);
  if (out.data) check_matrix("graph_rows: out", out, rows, dims);
  check_span("graph_rows: offsets of s", s.offsets, rows + 1);
  check_span("graph_rows: columns of s", s.columns, nnz);
  check_span("graph_rows: weights of s", s.weights, nnz);
  PAL_CHECK(rows < kLimit && dims < kLimit, "graph_rows: size of z",
            std::to_string(rows) + " x " + std::to_string(dims), "give fewer than 2^31 of each");
  if (rows == 0 || dims == 0) {
    if (value) PAL_CUDA_CHECK(cudaMemsetAsync(value, 0, sizeof(double), stream));
    return;
  }
  const Layout at(scratch.data, rows, nnz, dims);
  check_scratch("graph_rows", scratch, at.bytes);

  Args<T> a{out,
            z,
            partners,
            s.offsets.data,
            s.columns.data,
            s.weights.data,
            at.coefficients,
            at.parts,
            value ? at.values : nullptr,
            rows,
            at.items,
            nnz,
            static_cast<int>(dims),
            static_cast<int>(at.chunks),
            static_cast<float>(options.scale),
            options.into};
  int64_t values = at.items * at.chunks;
  if (options.form == RowForm::difference) {
    launch_rows<T, Walk::difference>(a, stream);
  } else if (options.form == RowForm::sum) {
    launch_rows<T, Walk::sum>(a, stream);
  } else if (at.chunks == 1) {
    launch_rows<T, Walk::repulsion>(a, stream);
  } else {
    values = at.groups;
    if (at.groups > 0) {
      products_kernel<T>
          <<<static_cast<unsigned>(ceil_div(at.groups, kWarps)), kThreads, 0, stream>>>(at.coefficients, a, at.groups);
      check_launch(stream);
    }
    if (out.data) launch_rows<T, Walk::repulsion_weighted>(a, stream);
  }
  if (at.tiles > 0 && out.data) {
    combine_kernel<T>
        <<<dim3(static_cast<unsigned>(rows), static_cast<unsigned>(ceil_div(dims, kThreads))), kThreads, 0, stream>>>(
            a);
    check_launch(stream);
  }
  if (value) sum(value, at.values, values, at.sum_partials, stream);
}

#define PAL_INSTANTIATE(T)                                                                                             \
  template int64_t graph_rows_scratch_bytes<T>(int64_t, int64_t, int64_t);                                             \
  template void graph_rows<T>(MatrixView<T>, double*, MatrixView<const T>, MatrixView<const T>, const CsrView<float>&, \
                              const GraphRowsOptions&, Scratch, cudaStream_t);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(bf16)
#undef PAL_INSTANTIATE

}  // namespace pal::kernels::cuda
