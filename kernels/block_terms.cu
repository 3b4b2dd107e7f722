// block_terms on CUDA: the rows are sorted by their block; a warp sums a tile of the list over a chunk of columns.
//
// A block of rows that reaches over the end of a tile is split there, and a second kernel adds its parts in order. In a
// tile at most two blocks are open: the one that began before it and the one that continues after it; so every tile has
// two slots for parts. The other ops have an owner for each row: a warp per row and chunk of columns.
#include "kernels/base/scratch.h"
#include "kernels/base/sort.h"
#include "kernels/base/sum.h"
#include "kernels/base/tile_product.cuh"
#include "kernels/block_terms.h"

namespace pal::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int64_t kTile = 128;            // rows, whole warps of them
constexpr int kSumItems = 4, kAhead = 4;  // columns of a lane; rows that it reads at once
constexpr int kRowItems = 8;
constexpr int64_t kSumChunk = kSumItems * kWarp, kRowChunk = kRowItems * kWarp;
constexpr int64_t kLimit = int64_t{1} << 31;

unsigned warp_blocks(int64_t warps) { return static_cast<unsigned>(ceil_div(warps, kWarps)); }

struct SumsLayout {
  int64_t tiles;
  uint64_t *keys, *sorted_keys;  // (rows) block of a row; `blocks`: of none
  uint32_t *row, *sorted_row;    // (rows)
  double* parts;                 // (2 · tiles, dims)
  void* memory;                  // of the sort
  int64_t bytes;

  SumsLayout(void* base, int64_t rows, int64_t blocks, int64_t dims) : tiles(ceil_div(rows, kTile)) {
    ScratchPieces pieces(base);
    keys = pieces.take<uint64_t>(rows);
    sorted_keys = pieces.take<uint64_t>(rows);
    row = pieces.take<uint32_t>(rows);
    sorted_row = pieces.take<uint32_t>(rows);
    parts = pieces.take<double>(2 * tiles * dims);
    memory = pieces.take<char>(sort_bytes(rows, bits_of(blocks)));
    bytes = pieces.bytes();
  }
};

__global__ void keys_kernel(uint64_t* keys, uint32_t* row, const int32_t* row_block, int64_t rows, int64_t blocks) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows) return;
  const int64_t block = row_block[i];
  PAL_DEVICE_CHECK(block >= -1 && block < blocks);
  keys[i] = block >= 0 && block < blocks ? block : blocks;
  row[i] = static_cast<uint32_t>(i);
}

// A warp per (tile of the sorted list, chunk of columns).
template <class T>
__global__ void __launch_bounds__(kThreads)
    tiles_kernel(MatrixView<double> sums, double* parts, MatrixView<const T> z, const uint64_t* keys,
                 const uint32_t* row, int64_t tiles, int64_t chunks) {
  const int64_t work = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp, tile = work / chunks;
  if (tile >= tiles) return;
  const int lane = threadIdx.x % kWarp;
  const int64_t column = work % chunks * kSumChunk + lane, begin = tile * kTile, end = min(begin + kTile, z.rows);
  const auto none = static_cast<uint32_t>(sums.rows);
  auto current = static_cast<uint32_t>(keys[begin]);
  bool began_before = begin > 0 && keys[begin - 1] == current;
  double sum[kSumItems] = {};
  const auto close = [&](bool goes_on) {
    double* to = began_before ? parts + 2 * tile * z.cols
                 : goes_on    ? parts + (2 * tile + 1) * z.cols
                              : sums.data + current * sums.stride;
    began_before = false;
#pragma unroll
    for (int k = 0; k < kSumItems; ++k) {
      if (current != none && column + k * kWarp < z.cols) to[column + k * kWarp] = sum[k];
      sum[k] = 0;
    }
  };
  for (int64_t e = begin; e < end; e += kWarp) {
    const bool mine = e + lane < end;
    const uint32_t my_block = mine ? static_cast<uint32_t>(keys[e + lane]) : none, my_row = mine ? row[e + lane] : 0;
    for (int t = 0; t < kWarp; t += kAhead) {
      float x[kAhead][kSumItems];
      uint32_t block[kAhead];
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        block[a] = __shfl_sync(kAllLanes, my_block, t + a);
        const T* from = z.data + __shfl_sync(kAllLanes, my_row, t + a) * z.stride;
#pragma unroll
        for (int k = 0; k < kSumItems; ++k) {
          const int64_t c = column + k * kWarp;
          x[a][k] = block[a] != none && c < z.cols ? to_float(from[c]) : 0.0f;
        }
      }
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        if (block[a] != current) {
          close(false);
          current = block[a];
        }
#pragma unroll
        for (int k = 0; k < kSumItems; ++k) sum[k] += x[a][k];
      }
    }
  }
  close(end < z.rows && keys[end] == current);
}

// The first place in the sorted list whose block is not below this one.
__device__ int64_t block_begin(const uint64_t* keys, int64_t rows, uint64_t block) {
  int64_t low = 0, high = rows;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (keys[middle] < block)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Blocks without rows are 0; blocks over several tiles are the sum of their parts, in order. A thread per column.
__global__ void combine_kernel(MatrixView<double> sums, const double* parts, const uint64_t* keys, int64_t rows) {
  const int64_t c = static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  if (c >= sums.cols) return;
  const int64_t begin = block_begin(keys, rows, blockIdx.x), end = block_begin(keys, rows, blockIdx.x + uint64_t{1});
  const int64_t first = begin / kTile, last = (end - 1) / kTile;
  if (begin < end && first == last) return;
  double total = 0;
  for (int64_t t = first; begin < end && t <= last; ++t) total += parts[(2 * t + (t == first ? 1 : 0)) * sums.cols + c];
  sums.data[blockIdx.x * sums.stride + c] = total;
}

// ---- B · sums ----
__global__ void __launch_bounds__(kTileThreads, 2)
    table_kernel(MatrixView<double> out, MatrixView<const double> table, MatrixView<const double> sums) {
  const int64_t i0 = static_cast<int64_t>(blockIdx.x) * kSide, j0 = blockIdx.y * kSide;
  double total[kEach][kEach] = {};
  tile_product<double>(total, RowsFrom<double>{table, i0}, ColumnsFrom<double>{sums, j0}, 0, table.cols);
  for_own(total, [&](int i, int j, double v) {
    if (i0 + i < out.rows && j0 + j < out.cols) out.data[(i0 + i) * out.stride + j0 + j] = v;
  });
}

// ---- back to rows ----
template <class T>
__global__ void __launch_bounds__(kThreads)
    rows_kernel(MatrixView<T> out, MatrixView<const double> per_block, const int32_t* row_block, double scale,
                Into into, int64_t chunks) {
  const int64_t work = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp, i = work / chunks;
  if (i >= out.rows) return;
  const int64_t block = row_block[i];
  PAL_DEVICE_CHECK(block >= -1 && block < per_block.rows);
  if (block < 0 && into == Into::add) return;
  const double* from = per_block.data + block * per_block.stride;
#pragma unroll
  for (int k = 0; k < kRowItems; ++k) {
    const int64_t c = work % chunks * kRowChunk + k * kWarp + threadIdx.x % kWarp;
    if (c >= out.cols) continue;
    T* to = out.data + i * out.stride + c;
    const double x = block >= 0 ? scale * from[c] : 0.0;
    *to = from_float<T>(static_cast<float>(into == Into::add ? to_float(*to) + x : x));
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    differences_kernel(MatrixView<T> out, double* values, MatrixView<const T> z, MatrixView<const double> means,
                       const double* pair_weight, const int32_t* row_block, double scale, Into into, int64_t chunks) {
  const int64_t work = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp, i = work / chunks;
  if (i >= z.rows) return;
  const int64_t block = row_block[i];
  PAL_DEVICE_CHECK(block >= -1 && block < means.rows);
  const double weight = block >= 0 ? pair_weight[block] : 0.0;
  const auto slope = static_cast<float>(scale * weight);
  const double* mean = means.data + block * means.stride;
  float square = 0;
#pragma unroll
  for (int k = 0; k < kRowItems; ++k) {
    const int64_t c = work % chunks * kRowChunk + k * kWarp + threadIdx.x % kWarp;
    if (c >= z.cols) continue;
    const float d = block >= 0 ? static_cast<float>(to_float(z.data[i * z.stride + c]) - mean[c]) : 0.0f;
    square += d * d;
    if (out.data == nullptr) continue;
    T* to = out.data + i * out.stride + c;
    *to = from_float<T>(into == Into::add ? to_float(*to) + slope * d : slope * d);
  }
  if (values == nullptr) return;
  const double total = warp_sum(static_cast<double>(square));
  if (threadIdx.x % kWarp == 0) values[work] = 2 * weight * total;
}

struct DifferencesLayout {
  int64_t chunks, items;
  double* values;  // (rows · chunks)
  double* sum_partials;
  int64_t bytes;
  DifferencesLayout(void* base, int64_t rows, int64_t dims) : chunks(ceil_div(dims, kRowChunk)), items(rows * chunks) {
    ScratchPieces pieces(base);
    values = pieces.take<double>(items);
    sum_partials = pieces.take<double>(kernels::cuda::sum_partials(items));
    bytes = pieces.bytes();
  }
};

}  // namespace

int64_t block_sums_scratch_bytes(int64_t rows, int64_t blocks, int64_t dims) {
  return rows == 0 || blocks == 0 || dims == 0 ? 0 : SumsLayout(nullptr, rows, blocks, dims).bytes;
}

template <class T>
void block_sums(MatrixView<double> sums, MatrixView<const T> z, Span<const int32_t> row_block, Scratch scratch,
                cudaStream_t stream) {
  check_matrix("block_sums: z", z, -1, z.cols);
  check_matrix("block_sums: sums", sums, -1, z.cols);
  check_span("block_sums: row_block", row_block, z.rows);
  PAL_CHECK(z.rows < kLimit && sums.rows < kLimit, "block_sums: rows or blocks", std::max(z.rows, sums.rows),
            "give fewer than 2^31");
  if (sums.rows == 0 || z.cols == 0) return;
  if (z.rows == 0) {
    PAL_CUDA_CHECK(
        cudaMemset2DAsync(sums.data, sums.stride * sizeof(double), 0, sums.cols * sizeof(double), sums.rows, stream));
    return;
  }
  const SumsLayout at(scratch.data, z.rows, sums.rows, z.cols);
  check_scratch("block_sums", scratch, at.bytes);

  keys_kernel<<<static_cast<unsigned>(ceil_div(z.rows, kThreads)), kThreads, 0, stream>>>(
      at.keys, at.row, row_block.data, z.rows, sums.rows);
  check_launch(stream);
  sort(at.sorted_keys, at.sorted_row, at.keys, at.row, z.rows, bits_of(sums.rows), at.memory, stream);
  const int64_t chunks = ceil_div(z.cols, kSumChunk);
  tiles_kernel<T><<<warp_blocks(at.tiles * chunks), kThreads, 0, stream>>>(sums, at.parts, z, at.sorted_keys,
                                                                           at.sorted_row, at.tiles, chunks);
  check_launch(stream);
  const dim3 grid(static_cast<unsigned>(sums.rows), static_cast<unsigned>(ceil_div(z.cols, kThreads)));
  combine_kernel<<<grid, kThreads, 0, stream>>>(sums, at.parts, at.sorted_keys, z.rows);
  check_launch(stream);
}

void block_table(MatrixView<double> out, MatrixView<const double> table, MatrixView<const double> sums,
                 cudaStream_t stream) {
  check_matrix("block_table: table", table, table.cols, table.cols);
  check_matrix("block_table: sums", sums, table.rows, sums.cols);
  check_matrix("block_table: out", out, table.rows, sums.cols);
  if (out.rows == 0 || out.cols == 0) return;
  PAL_CHECK(out.data != sums.data, "block_table: out", "the same memory as sums", "give another matrix");
  const dim3 grid(static_cast<unsigned>(ceil_div(out.rows, kSide)), static_cast<unsigned>(ceil_div(out.cols, kSide)));
  table_kernel<<<grid, kTileThreads, 0, stream>>>(out, table, sums);
  check_launch(stream);
}

template <class T>
void block_rows(MatrixView<T> out, MatrixView<const double> per_block, Span<const int32_t> row_block, double scale,
                Into into, cudaStream_t stream) {
  check_matrix("block_rows: out", out, -1, out.cols);
  check_matrix("block_rows: per_block", per_block, -1, out.cols);
  check_span("block_rows: row_block", row_block, out.rows);
  if (out.rows == 0 || out.cols == 0) return;
  const int64_t chunks = ceil_div(out.cols, kRowChunk);
  rows_kernel<T>
      <<<warp_blocks(out.rows * chunks), kThreads, 0, stream>>>(out, per_block, row_block.data, scale, into, chunks);
  check_launch(stream);
}

int64_t block_differences_scratch_bytes(int64_t rows, int64_t dims) {
  return DifferencesLayout(nullptr, rows, dims).bytes;
}

template <class T>
void block_differences(MatrixView<T> out, double* value, MatrixView<const T> z, MatrixView<const double> means,
                       Span<const double> pair_weight, Span<const int32_t> row_block, double scale, Into into,
                       Scratch scratch, cudaStream_t stream) {
  check_matrix("block_differences: z", z, -1, z.cols);
  check_matrix("block_differences: means", means, -1, z.cols);
  if (out.data) check_matrix("block_differences: out", out, z.rows, z.cols);
  check_span("block_differences: pair_weight", pair_weight, means.rows);
  check_span("block_differences: row_block", row_block, z.rows);
  if (z.rows == 0 || z.cols == 0) {
    if (value) PAL_CUDA_CHECK(cudaMemsetAsync(value, 0, sizeof(double), stream));
    return;
  }
  const DifferencesLayout at(scratch.data, z.rows, z.cols);
  check_scratch("block_differences", scratch, at.bytes);
  differences_kernel<T><<<warp_blocks(at.items), kThreads, 0, stream>>>(
      out, value ? at.values : nullptr, z, means, pair_weight.data, row_block.data, scale, into, at.chunks);
  check_launch(stream);
  if (value) sum(value, at.values, at.items, at.sum_partials, stream);
}

#define PAL_INSTANTIATE(T)                                                                                          \
  template void block_sums<T>(MatrixView<double>, MatrixView<const T>, Span<const int32_t>, Scratch, cudaStream_t); \
  template void block_rows<T>(MatrixView<T>, MatrixView<const double>, Span<const int32_t>, double, Into,           \
                              cudaStream_t);                                                                        \
  template void block_differences<T>(MatrixView<T>, double*, MatrixView<const T>, MatrixView<const double>,         \
                                     Span<const double>, Span<const int32_t>, double, Into, Scratch, cudaStream_t);
PAL_INSTANTIATE(float)
PAL_INSTANTIATE(bf16)
#undef PAL_INSTANTIATE

}  // namespace pal::kernels::cuda
