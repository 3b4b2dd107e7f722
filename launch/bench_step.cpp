#include "launch/bench_step.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/io/files.h"
#include "core/io/safetensors.h"
#include "core/model/state.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"
#include "launch/child.h"
#include "launch/machine.h"
#include "launch/mpirun.h"
#include "launch/table.h"

namespace pal {
namespace {

using nlohmann::json;

constexpr int kRanks = 2, kChecked = 20;
constexpr double kAgreement = 1e-8;

void write_input(const std::string& folder, int64_t batch, int64_t side) {
  auto comm = make_local_comm();
  ModelSpec spec = bench_step_model();
  spec.dtype = at::kDouble;
  const auto encoder = make_encoder(spec, *comm);
  NamedTensors tensors = model_state(*encoder);
  for (int64_t k = 0; k < 4; ++k) {
    for (int64_t view = 0; view < 2; ++view) {
      at::Tensor images = at::empty({batch, 3, side, side}, at::kDouble);
      Random random(1, Purpose::bench, static_cast<uint64_t>(k), 0, static_cast<uint32_t>(view));
      double* p = images.data_ptr<double>();
      for (int64_t i = 0; i < images.numel(); ++i) p[i] = random.normal();
      tensors.emplace_back(fmt::format("batch.{}.view.{}", k, view), images);
    }
  }
  write_safetensors(folder + "/input.safetensors", tensors,
                    {{"lr", "0.002"}, {"momentum", "0.9"}, {"weight_decay", "0"}, {"stem", "cifar"}, {"views", "separate"}});
}

// Both sides of one comparison, alive until this goes.
class Sides {
 public:
  Sides(const StepBenchOptions& o, const std::string& program, const std::string& folder, const std::string& dtype) {
    for (int r = 0; r < kRanks; ++r) {
      const std::string pipe = fmt::format("{}/go.{}", folder, r);
      PAL_CHECK(mkfifo(pipe.c_str(), 0600) == 0, "no pipe can be made", pipe, "set TMPDIR to a local folder");
    }
    std::vector<std::string> ours = {"mpirun"};
    for (const std::string& option : mpirun_options(host_facts(), kRanks, 1)) ours.push_back(option);
    ours.insert(ours.end(), {"-np", std::to_string(kRanks), program, "bench", "step", "--rank-in", folder, "--dtype", dtype});
    ours_ = std::make_unique<Child>(ours);
    ours_->read_line();   // ready
    for (int r = 0; r < kRanks; ++r) go_.emplace_back(fmt::format("{}/go.{}", folder, r));
    std::vector<std::string> peer = {o.peer.python, o.peer.script, "--input", folder + "/input.safetensors", "--packages", o.peer.packages,
                                     "--dtype", dtype, "--ranks", std::to_string(kRanks), "--bind", "--serve"};
    if (o.peer_layout == "channels_last") peer.push_back("--channels-last");
    peer_ = std::make_unique<Child>(peer);
    peer_->read_line();
  }
  json ours(int steps) {
    for (std::ofstream& go : go_) go << steps << std::endl;
    return json::parse(ours_->read_line());
  }
  json peer(int steps) {
    peer_->write_line(fmt::format("go {}", steps));
    return json::parse(peer_->read_line());
  }
  // Ends both; peak memory of each side's rank 0 in MB.
  std::pair<double, double> end() {
    for (std::ofstream& go : go_) go << 0 << std::endl;
    peer_->write_line("end");
    const json a = json::parse(ours_->read_line()), b = json::parse(peer_->read_line());
    ours_->wait();
    peer_->wait();
    return {a["peak_mb"], b["peak_mb"]};
  }

 private:
  std::unique_ptr<Child> ours_, peer_;
  std::vector<std::ofstream> go_;
};

// The largest relative difference of the first losses in float64.
double compare_losses(const StepBenchOptions& options, const std::string& program) {
  const BenchFolder folder;
  write_input(folder.path, options.check_batch, 16);
  Sides sides(options, program, folder.path, "float64");
  const std::vector<double> a = sides.ours(kChecked)["losses"], b = sides.peer(kChecked)["losses"];
  sides.end();
  double worst = 0;
  for (int k = 0; k < kChecked; ++k) worst = std::max(worst, std::abs(a[k] - b[k]) / std::max(1.0, std::abs(b[k])));
  return worst;
}

}  // namespace

ModelSpec bench_step_model() {
  ModelSpec spec;
  spec.backbone = "resnet18";
  spec.projector = {512, 512, 512};
  spec.batch_norm = "off";   // DDP has no synchronised batch norm on the CPU: each rank's own statistics, on both sides
  return spec;
}

int bench_step(const StepBenchOptions& options, const std::string& program) {
  check_peer_files(options.peer);
  install_peer(options.peer);

  fmt::print("losses: 20 steps of both sides in float64, batch {}\n", options.check_batch);
  std::fflush(stdout);
  const double difference = compare_losses(options, program);
  fmt::print("largest relative difference {:.1e} (must be below {:.0e})\n", difference, kAgreement);
  PAL_CHECK_CODE(Exit::check_failed, difference < kAgreement, "the two sides do not compute the same; difference", difference, "nothing was timed");

  fmt::print("time: {} turns of {} steps each in float32, batch {}\n", options.turns, options.steps_per_turn, options.batch);
  std::fflush(stdout);
  const BenchFolder folder;
  write_input(folder.path, options.batch, 32);
  Sides sides(options, program, folder.path, "float32");
  sides.ours(2);   // warm
  sides.peer(2);
  std::vector<double> ours, peer, ratios, self;
  for (int t = 0; t < options.turns; ++t) {
    const double a = median(sides.ours(options.steps_per_turn)["ms"]);
    const double b = median(sides.peer(options.steps_per_turn)["ms"]);
    if (!ours.empty()) self.push_back(a / ours.back());
    ours.push_back(a);
    peer.push_back(b);
    ratios.push_back(b / a);
  }
  const auto [ours_mb, peer_mb] = sides.end();
  const double ratio = median(ratios), spread = std::max(noise(ours), noise(peer));
  fmt::print("{}", format_table({{"step", "ours ms", "peer ms", "ratio", "noise", "ours MB", "peer MB"},
                                 {"resnet18 vicreg", fmt::format("{:.1f}", median(ours)), fmt::format("{:.1f}", median(peer)), fmt::format("{:.3f}", ratio),
                                  fmt::format("{:.3f}", spread), fmt::format("{:.0f}", ours_mb), fmt::format("{:.0f}", peer_mb)}}));
  fmt::print("ratio = peer / ours, larger is better; {}\n",
             verdict(ratio, spread));
  if (!options.json.empty()) {
    const json out = {{"machine", {{"cpu", proc_field("/proc/cpuinfo", "model name")}, {"ranks", kRanks}, {"threads_per_rank", 1}}},
                      {"results",
                       {{{"name", "step"},
                         {"params", {{"model", "resnet18"}, {"loss", "vicreg"}, {"batch", options.batch}, {"peer_layout", options.peer_layout}, {"loss_difference_float64", difference}}},
                         {"ours_ms", median(ours)},
                         {"peer", "PyTorch DDP gloo"},
                         {"peer_ms", median(peer)},
                         {"ratio", ratio},
                         {"noise", spread},
                         {"ours_peak_mb", ours_mb},
                         {"peer_peak_mb", peer_mb},
                         {"ours_samples_ms", ours},
                         {"peer_samples_ms", peer}}}}};
    write_file_atomically(options.json, out.dump(2) + "\n");
  }
  return static_cast<int>(Exit::ok);
}

}  // namespace pal
