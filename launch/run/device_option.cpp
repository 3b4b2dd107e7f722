#include "launch/run/device_option.h"

#include <fmt/format.h>

#include "kernels/base/error.h"
#include "launch/cli.h"

namespace pal::launch {

void add_device_option(CLI::App& app, std::string& device) {
  app.add_option("--device", device, "where the encoder computes: cpu, cuda, or auto: GPUs where each rank has one")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->default_val("auto");
}

dist::DeviceDecision choose_device(const std::string& asked, const std::string& setting, const setup::TrainSpec& train,
                                   dist::World& world) {
  const bool wide = train.dtype == at::kDouble;
  PAL_CHECK(!wide || asked != "cuda", "train.dtype=float64 is for CPU ranks", setting + "=cuda",
            "set " + setting + "=cpu, or train with train.dtype=float32");
  dist::DeviceDecision decision = world.use_device(wide ? "cpu" : asked, setting, train.start_seconds);
  if (wide && asked == "auto") decision.why = "train.dtype=float64 is for CPU ranks";
  return decision;
}

at::Device torch_device(const dist::DeviceDecision& decision) {
  if (decision.kind == dist::DeviceKind::cpu) return at::kCPU;
  return {at::kCUDA, static_cast<c10::DeviceIndex>(decision.ordinal)};
}

at::Device encoder_device(const std::string& asked, const setup::TrainSpec& train, dist::World& world) {
  const dist::DeviceDecision decision = choose_device(asked, "--device", train, world);
  if (world.rank() == 0 && decision.kind == dist::DeviceKind::cuda)
    fmt::print("device cuda:{}: {}\n", decision.ordinal, decision.why);
  return torch_device(decision);
}

}  // namespace pal::launch
