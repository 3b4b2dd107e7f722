// kernel_checks: every CUDA op against its CPU twin on this machine's GPU, and how fast it went. No LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/view.h"

namespace pal::launch {

struct KernelCheck {
  std::string op, shape;
  double error = 0, tolerance = 0;  // against the CPU twin; NaN does not pass
  double bytes = 0, flops = 0;      // of one run, by construction: what the algorithm reads, writes and computes
  double milliseconds = 0;          // of one run on the device
  bool passed() const { return error <= tolerance; }
};

// Rows of streaming ops are many, so that they do not fit a cache; those of ops that compare all with all are fewer.
struct KernelCheckSizes {
  int64_t rows = 65536, pair_rows = 4096, dims = 512;
  int32_t images = 256, image_size = 224;
  int repeats = 20;
};

// On the calling thread's device. T = float, and bf16 for batch norm, which autocast uses; other types and odd shapes
// are in the tests (launch/test, kernels.device).
std::vector<KernelCheck> check_kernels(const KernelCheckSizes& sizes, kernels::Cpu cpu);

// What `pal doctor` prints of them.
std::vector<std::vector<std::string>> kernel_check_rows(const std::vector<KernelCheck>& checks);

namespace detail {
void check_graph_ops(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, kernels::Cpu cpu);
void check_moment_ops(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, kernels::Cpu cpu);
void check_pair_ops(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, kernels::Cpu cpu);
void check_training_ops(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, kernels::Cpu cpu);
void check_augment(std::vector<KernelCheck>& checks, const KernelCheckSizes& sizes, kernels::Cpu cpu);
}  // namespace detail

}  // namespace pal::launch
