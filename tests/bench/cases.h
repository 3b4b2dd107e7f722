// cases: the cases of `pal bench kernels` and `pal bench graph`: inputs, peers, our side, and the work by construction.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/ops/named_tensors.h"
#include "tests/bench/bench.h"

namespace pal::bench {

using InputTensors = std::map<std::string, at::Tensor>;

// Our side of a case: run() fills outputs and value from the inputs, as a training step would call it.
struct KernelRun {
  std::function<double()> run;                              // returns the value, or 0
  std::vector<std::pair<std::string, at::Tensor>> outputs;  // float32, or int64 ("ids")
};

constexpr double kAgreement = 1e-5;  // of values, and of gradients relative to their norm

struct KernelPeer {
  std::string name;  // as in the peers' script
  double tolerance = kAgreement;
  std::string own_case = {};  // not a peer: our kernel on the inputs of that case; not compared
};

struct KernelCase {
  std::string name;
  nlohmann::json params;
  std::vector<KernelPeer> peers = {};
  double bytes = 0;  // bytes read and written, for GB/s
  double flops = 0;  // multiplications and additions, for GF/s
  std::function<ops::NamedTensors(const std::string& folder)> inputs = {};
  std::function<KernelRun(const InputTensors&, int threads)> ours = {};
};

std::vector<KernelCase> bench_cases(BenchSuite suite, BenchSizes sizes);  // all of a suite
// Cases without peers serve as own_case only.
std::vector<KernelCase> graph_bench_cases(BenchSizes sizes);  // pairs, blocks, simclr
std::vector<KernelCase> dense_bench_cases(BenchSizes sizes);  // covariance, nearest
std::vector<KernelCase> image_bench_cases(BenchSizes sizes);  // augment
std::vector<KernelCase> optim_bench_cases(BenchSizes sizes);  // lars, adamw
std::vector<KernelCase> store_bench_cases(BenchSizes sizes);  // the suite graph

at::Tensor normal_tensor(std::vector<int64_t> shape, uint64_t stream);  // float32, by a fixed seed

}  // namespace pal::bench
