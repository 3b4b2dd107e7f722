// row_logsumexp on CUDA: tiles of similarities with a running maximum; the gradient in panels of columns.
//
// A thread keeps the maximum and the sum of its own part of each row over kChunk columns; then its 16 neighbors and the
// chunks are joined in a fixed order. The gradient writes the weights of a panel of columns (n × kPanel, not n × N),
// multiplies them with the panel. The cut of the columns depends on their number only, so a row's bits do not depend on
// others.
#include <cfloat>
#include <cmath>

#include "kernels/base/scratch.h"
#include "kernels/base/tile_product.cuh"
#include "kernels/row_logsumexp.h"

namespace pal::kernels::cuda {
namespace {

constexpr int64_t kChunk = 8 * kSide;
constexpr int64_t kPanel = 8 * kSide;
constexpr int kThreads = 256;

dim3 tiles(int64_t rows, int64_t columns) {
  return {static_cast<unsigned>(ceil_div(rows, kSide)), static_cast<unsigned>(columns)};
}

// e^{x − lse} = e^{x − level} · e^{level − lse}: the level is lse in fp32; what it lacks goes into the weight.
struct Weight {
  float level, weight;
};
__device__ Weight weight_of(const double* lse, const double* degrees, int64_t i) {
  if (lse[i] == -INFINITY) return {FLT_MAX, 0};  // nothing to weigh
  const auto level = static_cast<float>(lse[i]);
  return {level, static_cast<float>(degrees[i] * exp(level - lse[i]))};
}

// ---- lse ----
// A sum of exponentials relative to one maximum, relative to a larger one. NaN stays NaN.
__device__ double relative_to(double sum, float from, float to) {
  return from == -INFINITY ? sum : sum * exp(static_cast<double>(from) - to);
}

// A block per 64 rows and kChunk columns.
template <class T>
__global__ void __launch_bounds__(kTileThreads, 2)
    chunks_kernel(float* maxima, double* sums, MatrixView<const T> rows, MatrixView<const T> columns,
                  const int64_t* self, float inverse) {
  const int64_t i0 = static_cast<int64_t>(blockIdx.x) * kSide, begin = blockIdx.y * kChunk;
  const int64_t end = min(begin + kChunk, columns.rows);
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float max[kEach];
  double sum[kEach] = {};
#pragma unroll
  for (int p = 0; p < kEach; ++p) max[p] = -INFINITY;
  for (int64_t j0 = begin; j0 < end; j0 += kSide) {
    float total[kEach][kEach] = {};
    tile_product<float>(total, RowsFrom<T>{rows, i0}, RowsFrom<T>{columns, j0}, 0, rows.cols);
#pragma unroll
    for (int p = 0; p < kEach; ++p) {
      const int64_t i = i0 + y + 16 * p, masked = self && i < rows.rows ? self[i] : -1;
      float largest = max[p];
#pragma unroll
      for (int q = 0; q < kEach; ++q) {
        const int64_t j = j0 + x + 16 * q;
        total[p][q] = j < end && j != masked ? total[p][q] * inverse : -INFINITY;
        largest = fmaxf(largest, total[p][q]);
      }
      sum[p] = relative_to(sum[p], max[p], largest);
      max[p] = largest;
      float part = 0;
#pragma unroll
      for (int q = 0; q < kEach; ++q) part += total[p][q] == -INFINITY ? 0.0f : expf(total[p][q] - largest);
      sum[p] += part;
    }
  }
#pragma unroll
  for (int p = 0; p < kEach; ++p) {
    for (int distance = 8; distance > 0; distance /= 2) {
      const float other_max = __shfl_xor_sync(kAllLanes, max[p], distance), largest = fmaxf(max[p], other_max);
      const double other = __shfl_xor_sync(kAllLanes, sum[p], distance);
      sum[p] = relative_to(sum[p], max[p], largest) + relative_to(other, other_max, largest);
      max[p] = largest;
    }
    const int64_t i = i0 + y + 16 * p;
    if (x != 0 || i >= rows.rows) continue;
    maxima[blockIdx.y * rows.rows + i] = max[p];
    sums[blockIdx.y * rows.rows + i] = sum[p];
  }
}

// A thread per row.
__global__ void join_kernel(double* lse, const float* maxima, const double* sums, int64_t rows, int64_t chunks) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows) return;
  float max = -INFINITY;
  for (int64_t c = 0; c < chunks; ++c) max = fmaxf(max, maxima[c * rows + i]);
  double sum = 0;
  for (int64_t c = 0; c < chunks; ++c) sum += relative_to(sums[c * rows + i], maxima[c * rows + i], max);
  lse[i] = sum == 0 ? -INFINITY : max + log(sum);
}

struct LseLayout {
  int64_t chunks;
  float* maxima;  // (chunks, rows)
  double* sums;   // (chunks, rows)
  int64_t bytes;
  LseLayout(void* base, int64_t rows, int64_t columns) : chunks(ceil_div(columns, kChunk)) {
    ScratchPieces pieces(base);
    maxima = pieces.take<float>(chunks * rows);
    sums = pieces.take<double>(chunks * rows);
    bytes = pieces.bytes();
  }
};

// ---- gradient ----
struct Terms {
  const double *row_lse, *row_degrees, *column_lse, *column_degrees;  // the last two null: columns are constants
};

// weights (n, kPanel) of the columns from `begin`. A block per tile.
template <class T>
__global__ void __launch_bounds__(kTileThreads, 2)
    weights_kernel(float* weights, MatrixView<const T> rows, MatrixView<const T> columns, const int64_t* self,
                   Terms terms, int64_t begin, float inverse) {
  const int64_t i0 = static_cast<int64_t>(blockIdx.x) * kSide, j0 = begin + blockIdx.y * kSide;
  float total[kEach][kEach] = {};
  tile_product<float>(total, RowsFrom<T>{rows, i0}, RowsFrom<T>{columns, j0}, 0, rows.cols);
  Weight of_column[kEach];
#pragma unroll
  for (int q = 0; q < kEach; ++q) {
    const int64_t j = j0 + threadIdx.x % 16 + 16 * q;
    of_column[q] = terms.column_lse && j < columns.rows ? weight_of(terms.column_lse, terms.column_degrees, j)
                                                        : Weight{FLT_MAX, 0};
  }
#pragma unroll
  for (int p = 0; p < kEach; ++p) {
    const int64_t i = i0 + threadIdx.x / 16 + 16 * p;
    if (i >= rows.rows) continue;
    const Weight of_row = weight_of(terms.row_lse, terms.row_degrees, i);
    const int64_t masked = self ? self[i] : -1;
#pragma unroll
    for (int q = 0; q < kEach; ++q) {
      const int64_t j = j0 + threadIdx.x % 16 + 16 * q;
      if (j >= columns.rows) continue;
      const float s = total[p][q] * inverse;
      const float w = of_row.weight * expf(s - of_row.level) + of_column[q].weight * expf(s - of_column[q].level);
      weights[i * kPanel + (j - begin)] = j == masked ? 0.0f : w;
    }
  }
}

struct Turn {  // of a panel among all
  bool first, last;
};

// sums (+)= weights · the panel's columns; the last panel writes out.
template <class T>
__global__ void __launch_bounds__(kTileThreads, 2)
    panel_kernel(MatrixView<T> out, float* sums, MatrixView<const float> weights, MatrixView<const T> panel,
                 float scale, Into into, Turn turn) {
  const int64_t i0 = static_cast<int64_t>(blockIdx.x) * kSide, j0 = blockIdx.y * kSide;
  float total[kEach][kEach] = {};
  tile_product<float>(total, RowsFrom<float>{weights, i0}, ColumnsFrom<T>{panel, j0}, 0, panel.rows);
  for_own(total, [&](int i, int j, float v) {
    if (i0 + i >= out.rows || j0 + j >= out.cols) return;
    float* sum = sums + (i0 + i) * out.cols + j0 + j;
    if (!turn.first) v += *sum;
    if (!turn.last) {
      *sum = v;
      return;
    }
    T* to = out.data + (i0 + i) * out.stride + j0 + j;
    *to = from_float<T>(into == Into::add ? to_float(*to) + scale * v : scale * v);
  });
}

struct GradientLayout {
  float* weights;  // (n, kPanel)
  float* sums;     // (n, dims)
  int64_t bytes;
  GradientLayout(void* base, int64_t rows, int64_t dims) {
    ScratchPieces pieces(base);
    weights = pieces.take<float>(rows * kPanel);
    sums = pieces.take<float>(rows * dims);
    bytes = pieces.bytes();
  }
};

template <class T>
void check_similarities(const std::string& op, MatrixView<const T> rows, MatrixView<const T> columns,
                        Span<const int64_t> self, const RowLogSumExpOptions& options) {
  check_matrix((op + ": rows").c_str(), rows, -1, rows.cols);
  check_matrix((op + ": columns").c_str(), columns, -1, rows.cols);
  if (self.size != 0) check_span((op + ": self").c_str(), self, rows.rows);
  PAL_CHECK(options.temperature > 0 && std::isfinite(options.temperature), op + ": temperature", options.temperature,
            "give a finite number above 0");
}

void check_terms(const std::string& name, const LogSumExpTerms& terms, int64_t size) {
  check_span((name + ": lse").c_str(), terms.lse, size);
  check_span((name + ": degrees").c_str(), terms.degrees, size);
}

}  // namespace

template <class T>
int64_t row_logsumexp_scratch_bytes(int64_t rows, int64_t columns, int64_t) {
  return LseLayout(nullptr, rows, columns).bytes;
}

template <class T>
void row_logsumexp(Span<double> lse, MatrixView<const T> rows, MatrixView<const T> columns, Span<const int64_t> self,
                   const RowLogSumExpOptions& options, Scratch scratch, cudaStream_t stream) {
  check_similarities("row_logsumexp", rows, columns, self, options);
  check_span("row_logsumexp: lse", lse, rows.rows);
  if (rows.rows == 0) return;
  const LseLayout at(scratch.data, rows.rows, columns.rows);
  check_scratch("row_logsumexp", scratch, at.bytes);
  if (at.chunks > 0) {
    chunks_kernel<T><<<tiles(rows.rows, at.chunks), kTileThreads, 0, stream>>>(
        at.maxima, at.sums, rows, columns, self.size ? self.data : nullptr,
        static_cast<float>(1 / options.temperature));
    check_launch(stream);
  }
  join_kernel<<<static_cast<unsigned>(ceil_div(rows.rows, kThreads)), kThreads, 0, stream>>>(
      lse.data, at.maxima, at.sums, rows.rows, at.chunks);
  check_launch(stream);
}

template <class T>
int64_t row_logsumexp_gradient_scratch_bytes(int64_t rows, int64_t, int64_t dims) {
  return GradientLayout(nullptr, rows, dims).bytes;
}

template <class T>
void row_logsumexp_gradient(MatrixView<T> out, MatrixView<const T> rows, MatrixView<const T> columns,
                            Span<const int64_t> self, const LogSumExpTerms& row_terms,
                            const LogSumExpTerms& column_terms, const RowLogSumExpOptions& options, Scratch scratch,
                            cudaStream_t stream) {
  const std::string op = "row_logsumexp_gradient";
  const int64_t n = rows.rows, count = columns.rows, dims = rows.cols;
  check_similarities(op, rows, columns, self, options);
  check_matrix((op + ": out").c_str(), out, n, dims);
  check_terms(op + ": row_terms", row_terms, n);
  const bool constant = column_terms.lse.size == 0 && column_terms.degrees.size == 0;
  if (!constant) check_terms(op + ": column_terms", column_terms, count);
  PAL_CHECK(std::isfinite(options.scale), op + ": scale", options.scale, "it must be a finite number");
  if (n == 0 || dims == 0) return;
  if (count == 0) {  // no column: a gradient of 0
    if (options.into == Into::add) return;
    PAL_CUDA_CHECK(cudaMemset2DAsync(out.data, out.stride * sizeof(T), 0, dims * sizeof(T), n, stream));
    return;
  }
  const GradientLayout at(scratch.data, n, dims);
  check_scratch(op.c_str(), scratch, at.bytes);
  const Terms terms{row_terms.lse.data, row_terms.degrees.data, constant ? nullptr : column_terms.lse.data,
                    constant ? nullptr : column_terms.degrees.data};
  for (int64_t begin = 0; begin < count; begin += kPanel) {
    const int64_t width = std::min(kPanel, count - begin);
    weights_kernel<T><<<tiles(n, ceil_div(width, kSide)), kTileThreads, 0, stream>>>(
        at.weights, rows, columns, self.size ? self.data : nullptr, terms, begin,
        static_cast<float>(1 / options.temperature));
    check_launch(stream);
    panel_kernel<T><<<tiles(n, ceil_div(dims, kSide)), kTileThreads, 0, stream>>>(
        out, at.sums, {at.weights, n, width, kPanel},
        {columns.data + begin * columns.stride, width, dims, columns.stride},
        static_cast<float>(options.scale / options.temperature), options.into,
        Turn{begin == 0, begin + kPanel >= count});
    check_launch(stream);
  }
}

#define PAL_INSTANTIATE(T)                                                                                    \
  template int64_t row_logsumexp_scratch_bytes<T>(int64_t, int64_t, int64_t);                                 \
  template void row_logsumexp<T>(Span<double>, MatrixView<const T>, MatrixView<const T>, Span<const int64_t>, \
                                 const RowLogSumExpOptions&, Scratch, cudaStream_t);                          \
  template int64_t row_logsumexp_gradient_scratch_bytes<T>(int64_t, int64_t, int64_t);                        \
  template void row_logsumexp_gradient<T>(MatrixView<T>, MatrixView<const T>, MatrixView<const T>,            \
                                          Span<const int64_t>, const LogSumExpTerms&, const LogSumExpTerms&,  \
                                          const RowLogSumExpOptions&, Scratch, cudaStream_t);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(bf16)
#undef PAL_INSTANTIATE

}  // namespace pal::kernels::cuda
