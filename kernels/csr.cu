// csr on CUDA: every pair and its mirror become entries with a (row, column) key; a stable radix sort brings equal keys
// together in the order given; a scan over the heads of the runs places them; the head of a run adds it up.
#include <cub/device/device_scan.cuh>

#include "kernels/base/device.cuh"
#include "kernels/base/scratch.h"
#include "kernels/base/sort.h"
#include "kernels/csr_check.h"

namespace pal::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kLimit = int64_t{1} << 31;

// A key is row << bits | column, where `bits` holds `rows`. Entries that do not count (the mirror of i=j, bad pairs)
// and the entry that closes the list have row = rows: they sort behind all others.

struct Layout {
  int64_t entries;
  uint64_t *keys, *sorted_keys;  // (entries)
  uint32_t *pair, *sorted_pair;  // (entries) which pair an entry comes from
  uint32_t* position;            // (entries) 1 + place of the entry's run in the result
  int32_t* fault;                // (1) bit 0: bad index, bit 1: bad weight
  void* memory;                  // of the sort, then of the scan
  size_t scan_bytes = 0;
  int64_t bytes;

  Layout(void* base, int64_t rows, int64_t pairs) : entries(2 * pairs + 1) {
    ScratchPieces pieces(base);
    keys = pieces.take<uint64_t>(entries);
    sorted_keys = pieces.take<uint64_t>(entries);
    pair = pieces.take<uint32_t>(entries);
    sorted_pair = pieces.take<uint32_t>(entries);
    position = pieces.take<uint32_t>(entries);
    fault = pieces.take<int32_t>(1);
    PAL_CUDA_CHECK(cub::DeviceScan::InclusiveSum(nullptr, scan_bytes, position, position, entries));
    memory = pieces.take<char>(std::max(sort_bytes(entries, 2 * bits_of(rows)), static_cast<int64_t>(scan_bytes)));
    bytes = pieces.bytes();
  }
};

__global__ void expand_kernel(uint64_t* keys, uint32_t* pair, int32_t* fault, const int32_t* i, const int32_t* j,
                              const float* w, int64_t pairs, int64_t rows, int bits) {
  const int64_t p = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (p > pairs) return;
  const uint64_t behind = static_cast<uint64_t>(rows) << bits;
  if (p == pairs) {
    keys[2 * p] = behind;
    pair[2 * p] = 0;
    return;
  }
  const uint64_t a = static_cast<uint32_t>(i[p]), b = static_cast<uint32_t>(j[p]);  // negative: beyond any rows
  const bool bad_index = a >= rows || b >= rows;
  const bool bad_weight = w != nullptr && !isfinite(w[p]);
  if (bad_index || bad_weight) atomicOr(fault, (bad_index ? 1 : 0) | (bad_weight ? 2 : 0));
  const bool counts = !bad_index && !bad_weight;
  keys[2 * p] = counts ? a << bits | b : behind;
  keys[2 * p + 1] = counts && a != b ? b << bits | a : behind;
  pair[2 * p] = pair[2 * p + 1] = static_cast<uint32_t>(p);
}

__global__ void heads_kernel(uint32_t* head, const uint64_t* keys, int64_t entries) {
  const int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (e < entries) head[e] = e == 0 || keys[e] != keys[e - 1];
}

// The head of a run adds its weights in the order given.
__global__ void merge_kernel(int32_t* columns, float* weights, int64_t* nnz, const uint64_t* keys, const uint32_t* pair,
                             const uint32_t* position, const int32_t* fault, const float* w, int64_t entries,
                             int64_t rows, int bits) {
  const int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (e >= entries) return;
  const uint64_t key = keys[e];
  if (e > 0 && key == keys[e - 1]) return;
  const int64_t place = static_cast<int64_t>(position[e]) - 1;
  if (key >> bits == rows) {
    *nnz = *fault & 1 ? kCsrBadIndex : *fault & 2 ? kCsrBadWeight : place;
    return;
  }
  double total = 0;
  for (int64_t r = e; keys[r] == key; ++r) total += w ? w[pair[r]] : 1.0f;  // ends: the closing entry has another key
  columns[place] = static_cast<int32_t>(key & ((uint64_t{1} << bits) - 1));
  weights[place] = static_cast<float>(total);
}

// Where the entries of this row begin in the result; row = rows: where all end.
__device__ int64_t row_begin(const uint64_t* keys, const uint32_t* position, int64_t entries, int64_t row, int bits) {
  const uint64_t first = static_cast<uint64_t>(row) << bits;
  int64_t low = 0, high = entries - 1;  // the closing entry is never below
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (keys[middle] < first)
      low = middle + 1;
    else
      high = middle;
  }
  return static_cast<int64_t>(position[low]) - 1;
}

// A warp per row: it reads 32 weights at once and adds them one after another, as the CPU does.
__global__ void rows_kernel(int64_t* offsets, float* degrees, const float* weights, const uint64_t* keys,
                            const uint32_t* position, int64_t entries, int64_t rows, int bits) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (row > rows) return;
  const int lane = threadIdx.x % kWarp;
  const int64_t begin = row_begin(keys, position, entries, row, bits);
  if (lane == 0) offsets[row] = begin;
  if (row == rows) return;
  const int64_t end = row_begin(keys, position, entries, row + 1, bits);
  double degree = 0;
  for (int64_t e = begin; e < end; e += kWarp) {
    const float mine = e + lane < end ? fabsf(weights[e + lane]) : 0.0f;  // zeros change no sum of magnitudes
    for (int t = 0; t < kWarp; ++t) degree += __shfl_sync(kAllLanes, mine, t);
  }
  if (lane == 0) degrees[row] = static_cast<float>(degree);
}

}  // namespace

template <class T>
int64_t csr_scratch_bytes(int64_t rows, int64_t pairs) {
  return Layout(nullptr, rows, pairs).bytes;
}

template <class T>
void csr(const CsrOut<T>& out, const PairsView<T>& pairs, int64_t rows, Scratch scratch, cudaStream_t stream) {
  const int64_t count = pairs.i.size;
  detail::check_csr(out, pairs, rows);
  PAL_CHECK(count < kLimit, "csr: pairs", count, "give fewer than 2^31");
  if (count == 0) {
    PAL_CUDA_CHECK(cudaMemsetAsync(out.offsets.data, 0, (rows + 1) * sizeof(int64_t), stream));
    PAL_CUDA_CHECK(cudaMemsetAsync(out.degrees.data, 0, rows * sizeof(T), stream));
    PAL_CUDA_CHECK(cudaMemsetAsync(out.nnz, 0, sizeof(int64_t), stream));
    return;
  }
  Layout at(scratch.data, rows, count);
  check_scratch("csr", scratch, at.bytes);

  const int bits = bits_of(rows);
  const float* w = pairs.w.size ? pairs.w.data : nullptr;
  const auto blocks = [](int64_t n) { return static_cast<unsigned>(ceil_div(n, kThreads)); };
  PAL_CUDA_CHECK(cudaMemsetAsync(at.fault, 0, sizeof(int32_t), stream));
  expand_kernel<<<blocks(count + 1), kThreads, 0, stream>>>(at.keys, at.pair, at.fault, pairs.i.data, pairs.j.data, w,
                                                            count, rows, bits);
  check_launch(stream);
  sort(at.sorted_keys, at.sorted_pair, at.keys, at.pair, at.entries, 2 * bits, at.memory, stream);
  heads_kernel<<<blocks(at.entries), kThreads, 0, stream>>>(at.position, at.sorted_keys, at.entries);
  check_launch(stream);
  PAL_CUDA_CHECK(cub::DeviceScan::InclusiveSum(at.memory, at.scan_bytes, at.position, at.position, at.entries, stream));
  merge_kernel<<<blocks(at.entries), kThreads, 0, stream>>>(out.columns.data, out.weights.data, out.nnz, at.sorted_keys,
                                                            at.sorted_pair, at.position, at.fault, w, at.entries, rows,
                                                            bits);
  check_launch(stream);
  rows_kernel<<<blocks((rows + 1) * kWarp), kThreads, 0, stream>>>(out.offsets.data, out.degrees.data, out.weights.data,
                                                                   at.sorted_keys, at.position, at.entries, rows, bits);
  check_launch(stream);
}

template int64_t csr_scratch_bytes<float>(int64_t, int64_t);
template void csr<float>(const CsrOut<float>&, const PairsView<float>&, int64_t, Scratch, cudaStream_t);

}  // namespace pal::kernels::cuda
