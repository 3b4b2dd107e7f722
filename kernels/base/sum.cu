// sum: two stages: a block per tile of 4,096 numbers, then one block over the tiles.
#include "kernels/base/device.cuh"
#include "kernels/base/sum.h"

namespace pal::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kTile = 4096;

// Block b adds x[b · tile, (b + 1) · tile).
__global__ void sum_kernel(double* out, const double* x, int64_t n, int64_t tile) {
  const int64_t begin = blockIdx.x * tile, end = min(n, begin + tile);
  double total = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) total += x[i];
  total = block_sum(total);
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

}  // namespace

int64_t sum_partials(int64_t n) { return ceil_div(n, kTile); }

void sum(double* out, const double* x, int64_t n, double* partials, cudaStream_t stream) {
  const int64_t tiles = sum_partials(n);
  if (tiles <= 1) {
    sum_kernel<<<1, kThreads, 0, stream>>>(out, x, n, kTile);
    return check_launch(stream);
  }
  sum_kernel<<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(partials, x, n, kTile);
  check_launch(stream);
  sum_kernel<<<1, kThreads, 0, stream>>>(out, partials, tiles, tiles);
  check_launch(stream);
}

}  // namespace pal::kernels::cuda
