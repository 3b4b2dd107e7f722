// kernels_side: our side of one case, and the lists of cases.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <chrono>
#include <fstream>
#include <iostream>

#include "core/io/files.h"
#include "core/io/safetensors.h"
#include "kernels/base/philox.h"
#include "launch/process/machine.h"
#include "tests/bench/cases.h"

namespace pal::bench {
namespace {

using nlohmann::json;

double milliseconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

json check(const KernelRun& run, const std::string& path) {
  json answer = {{"value", run.run()}, {"outputs", json::array()}};
  for (const auto& [name, tensor] : run.outputs) {
    const at::Tensor floats = tensor.to(at::kFloat).contiguous();
    io::FileWriter file(path + "." + name);
    file.write(floats.data_ptr(), static_cast<size_t>(floats.nbytes()));
    file.finish();
    answer["outputs"].push_back(name);
  }
  return answer;
}

}  // namespace

at::Tensor normal_tensor(std::vector<int64_t> shape, uint64_t stream) {
  const at::Tensor t = at::empty(shape, at::kFloat);
  Random random(1, Purpose::bench, stream);
  float* p = t.data_ptr<float>();
  for (int64_t i = 0; i < t.numel(); ++i) p[i] = static_cast<float>(random.normal());
  return t;
}

std::vector<KernelCase> bench_cases(BenchSuite suite, BenchSizes sizes) {
  if (suite == BenchSuite::graph) return store_bench_cases(sizes);
  std::vector<KernelCase> all;
  for (auto* cases : {graph_bench_cases, dense_bench_cases, image_bench_cases, optim_bench_cases}) {
    for (KernelCase& c : cases(sizes)) all.push_back(std::move(c));
  }
  return all;
}

std::vector<std::string> bench_case_names(BenchSuite suite) {
  std::vector<std::string> names;
  for (const KernelCase& c : bench_cases(suite, BenchSizes::small)) names.push_back(c.name);
  return names;
}

int bench_kernels_side(const KernelBenchOptions& options, const std::string& folder) {
  at::set_num_threads(options.threads);
  launch::keep_freed_memory();
  KernelRun run;
  for (const KernelCase& c : bench_cases(options.suite, options.sizes)) {
    if (c.name == options.cases.at(0))
      run = c.ours(io::read_safetensors(folder + "/input.safetensors").tensors, options.threads);
  }
  const double before = launch::reset_peak_memory_mb();
  const auto say = [](const json& line) { std::cout << line.dump() << std::endl; };
  say({{"ready", true}});
  for (std::string word; std::cin >> word && word != "end";) {
    if (word == "check") {
      std::cin >> word;
      say(check(run, word));
    } else {
      int at_least = 0;
      std::cin >> at_least;
      std::vector<double> ms;
      double total = 0;
      do {
        ms.push_back(milliseconds([&] { run.run(); }));
        total += ms.back();
      } while (total < at_least);
      say({{"ms", ms}});
    }
  }
  say({{"peak_mb", launch::peak_memory_mb()}, {"extra_mb", launch::peak_memory_mb() - before}});
  return 0;
}

}  // namespace pal::bench
