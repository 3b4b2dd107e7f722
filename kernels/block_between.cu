// block_terms on CUDA: block_between, a block of threads per block of rows and 256 columns; P² D differences from L2.
#include "kernels/base/device.cuh"
#include "kernels/base/scratch.h"
#include "kernels/base/sum.h"
#include "kernels/block_terms.h"

namespace pal::kernels::cuda {
namespace {

constexpr int kThreads = 256;

struct Layout {
  int64_t chunks, items;
  double* values;  // (blocks · chunks)
  double* sum_partials;
  int64_t bytes;
  Layout(void* base, int64_t blocks, int64_t dims) : chunks(ceil_div(dims, kThreads)), items(blocks * chunks) {
    ScratchPieces pieces(base);
    values = pieces.take<double>(items);
    sum_partials = pieces.take<double>(kernels::cuda::sum_partials(items));
    bytes = pieces.bytes();
  }
};

__global__ void between_kernel(MatrixView<double> between, double* pair_weight, double* values,
                               MatrixView<const double> table, MatrixView<const double> means, const double* members) {
  const int64_t c = blockIdx.x, k = static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  const bool inside = k < means.cols;
  const double mean = inside ? means.data[c * means.stride + k] : 0.0, own = members[c];
  double weights = 0, sum = 0, value = 0;
  for (int64_t d = 0; d < means.rows; ++d) {
    const double weight = table.data[c * table.stride + d] * members[d];
    weights += weight;
    if (weight == 0 || own == 0 || c == d || !inside) continue;  // a block without members has no mean
    const double difference = mean - means.data[d * means.stride + k];
    sum += weight * difference;
    value += own * weight * difference * difference;
  }
  if (inside) between.data[c * between.stride + k] = sum;
  value = block_sum(value);
  if (threadIdx.x != 0) return;
  values[blockIdx.y * static_cast<int64_t>(gridDim.x) + c] = value;
  if (blockIdx.y == 0) pair_weight[c] = weights;
}

}  // namespace

int64_t block_between_scratch_bytes(int64_t blocks, int64_t dims) { return Layout(nullptr, blocks, dims).bytes; }

void block_between(MatrixView<double> between, Span<double> pair_weight, double* value, MatrixView<const double> table,
                   MatrixView<const double> means, Span<const double> members, Scratch scratch, cudaStream_t stream) {
  const int64_t blocks = means.rows;
  check_matrix("block_between: means", means, -1, means.cols);
  check_matrix("block_between: table", table, blocks, blocks);
  check_matrix("block_between: between", between, blocks, means.cols);
  check_span("block_between: pair_weight", pair_weight, blocks);
  check_span("block_between: members", members, blocks);
  PAL_CHECK(between.data != means.data || blocks * means.cols == 0, "block_between: between",
            "the same memory as means", "give another matrix");
  PAL_CHECK(means.cols > 0 || blocks == 0, "block_between: columns of means", means.cols, "give 1 or more");
  if (blocks == 0) {
    if (value) PAL_CUDA_CHECK(cudaMemsetAsync(value, 0, sizeof(double), stream));
    return;
  }
  const Layout at(scratch.data, blocks, means.cols);
  check_scratch("block_between", scratch, at.bytes);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(at.chunks));
  between_kernel<<<grid, kThreads, 0, stream>>>(between, pair_weight.data, at.values, table, means, members.data);
  check_launch(stream);
  if (value) sum(value, at.values, at.items, at.sum_partials, stream);
}

}  // namespace pal::kernels::cuda
