// update on CUDA: a block per run, so that one launch does all parameters, however small. Compiled without fused
// multiply-add: the elements have the CPU's bits.
#include "kernels/base/device.cuh"
#include "kernels/base/scratch.h"
#include "kernels/update_step.h"

namespace pal::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void momentum_kernel(const UpdateRun* runs, const float* factors, MomentumNumbers<float> k) {
  const UpdateRun run = runs[blockIdx.x];
  k.factor = factors[run.parameter];
  if (!run.decays) k.decay = 0;
  for (int64_t i = threadIdx.x; i < run.n; i += kThreads) {
    float p = run.p[i], b = run.first[i];
    momentum_step(p, b, run.g[i], k);
    run.first[i] = b;
    run.p[i] = p;
  }
}

__global__ void adam_kernel(const UpdateRun* runs, AdamNumbers<float> k) {
  const UpdateRun run = runs[blockIdx.x];
  if (!run.decays) k.keep = 1;
  for (int64_t i = threadIdx.x; i < run.n; i += kThreads) {
    float p = run.p[i], m = run.first[i], v = run.second[i];
    adam_step(p, m, v, run.g[i], k);
    run.first[i] = m;
    run.second[i] = v;
    run.p[i] = p;
  }
}

// Of each run: Σ p² and Σ (g + λp)².
__global__ void squares_kernel(double* of_p, double* of_update, const UpdateRun* runs, float decay) {
  const UpdateRun run = runs[blockIdx.x];
  double p2 = 0, u2 = 0;
  if (run.decays) {
    for (int64_t i = threadIdx.x; i < run.n; i += kThreads) {
      const float p = run.p[i];
      const double x = p, u = run.g[i] + decay * p;
      p2 += x * x;
      u2 += u * u;
    }
  }
  p2 = block_sum(p2);
  u2 = block_sum(u2);
  if (threadIdx.x != 0) return;
  of_p[blockIdx.x] = p2;
  of_update[blockIdx.x] = u2;
}

// A block per parameter over its runs.
__global__ void factors_kernel(float* factors, const double* of_p, const double* of_update, const int64_t* begin,
                               double eta) {
  double p2 = 0, u2 = 0;
  for (int64_t r = begin[blockIdx.x] + threadIdx.x; r < begin[blockIdx.x + 1]; r += kThreads) {
    p2 += of_p[r];
    u2 += of_update[r];
  }
  p2 = block_sum(p2);
  u2 = block_sum(u2);
  if (threadIdx.x == 0) factors[blockIdx.x] = p2 > 0 && u2 > 0 ? static_cast<float>(eta * sqrt(p2) / sqrt(u2)) : 1.0f;
}

struct Layout {
  double *of_p, *of_update;  // (runs)
  int64_t bytes;
  Layout(void* base, int64_t runs) {
    ScratchPieces pieces(base);
    of_p = pieces.take<double>(runs);
    of_update = pieces.take<double>(runs);
    bytes = pieces.bytes();
  }
};

unsigned blocks(int64_t count) { return static_cast<unsigned>(count); }

}  // namespace

void momentum(Span<const UpdateRun> runs, Span<const float> factors, const MomentumNumbers<float>& numbers,
              cudaStream_t stream) {
  PAL_CHECK(factors.data != nullptr || runs.size == 0, "momentum: factors", "none", "give one per parameter");
  if (runs.size == 0) return;
  momentum_kernel<<<blocks(runs.size), kThreads, 0, stream>>>(runs.data, factors.data, numbers);
  check_launch(stream);
}

void adam(Span<const UpdateRun> runs, const AdamNumbers<float>& numbers, cudaStream_t stream) {
  if (runs.size == 0) return;
  adam_kernel<<<blocks(runs.size), kThreads, 0, stream>>>(runs.data, numbers);
  check_launch(stream);
}

int64_t adaptation_scratch_bytes(int64_t runs) { return Layout(nullptr, runs).bytes; }

void adaptation(Span<float> factors, Span<const UpdateRun> runs, Span<const int64_t> begin, float decay, double eta,
                Scratch scratch, cudaStream_t stream) {
  check_span("adaptation: begin", begin, factors.size + 1);
  if (factors.size == 0) return;
  const Layout at(scratch.data, runs.size);
  check_scratch("adaptation", scratch, at.bytes);
  if (runs.size > 0) {
    squares_kernel<<<blocks(runs.size), kThreads, 0, stream>>>(at.of_p, at.of_update, runs.data, decay);
    check_launch(stream);
  }
  factors_kernel<<<blocks(factors.size), kThreads, 0, stream>>>(factors.data, at.of_p, at.of_update, begin.data, eta);
  check_launch(stream);
}

}  // namespace pal::kernels::cuda
