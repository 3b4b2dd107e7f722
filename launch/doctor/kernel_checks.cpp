#include "launch/doctor/kernel_checks.h"

#include "launch/doctor/kernel_check_tools.h"

namespace pal::launch {

std::vector<KernelCheck> check_kernels(const KernelCheckSizes& sizes, kernels::Cpu cpu) {
  std::vector<KernelCheck> checks;
  detail::check_graph_ops(checks, sizes, cpu);
  detail::check_moment_ops(checks, sizes, cpu);
  detail::check_pair_ops(checks, sizes, cpu);
  detail::check_training_ops(checks, sizes, cpu);
  detail::check_augment(checks, sizes, cpu);
  return checks;
}

std::vector<std::vector<std::string>> kernel_check_rows(const std::vector<KernelCheck>& checks) {
  std::vector<std::vector<std::string>> rows = {
      {"kernel", "shape", "state", "error", "allowed", "ms", "GB/s", "GFLOP/s"}};
  for (const KernelCheck& c : checks) {
    rows.push_back({c.op, c.shape, c.passed() ? "ok" : "WRONG", fmt::format("{:.1e}", c.error),
                    fmt::format("{:.1e}", c.tolerance), fmt::format("{:.3f}", c.milliseconds),
                    fmt::format("{:.1f}", c.bytes / c.milliseconds * 1e-6),
                    fmt::format("{:.1f}", c.flops / c.milliseconds * 1e-6)});
  }
  return rows;
}

}  // namespace pal::launch
