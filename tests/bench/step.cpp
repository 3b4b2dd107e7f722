// step: one training step on 2 CPU ranks × 1 thread, ours against PyTorch DDP with gloo and the official VICReg loss.
//
// Cases: resnet18 (projector of 512); projector (ResNet-18 with the official projector of 8192, three layers);
// quickstart (its network and loader, against torchvision's transforms in a DataLoader).
// The parent writes the initial weights and the batches into a folder, starts both sides as long-lived jobs, and runs
// them in turns (ours, peer, ours, …). A waiting side blocks: each of our ranks reads its own pipe (waiting in MPI
// would spin), the peer's rank 0 reads its standard input.
// Before timing, the first 20 losses in float64 must agree to 1e-8. `projector` is checked with 1024 instead of 8192;
// quickstart is not checked, because each side draws its own augmentations.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/data/import/import.h"
#include "core/io/files.h"
#include "core/io/safetensors.h"
#include "core/model/encoder.h"
#include "core/model/state.h"
#include "core/ops/named_tensors.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"
#include "launch/process/machine.h"
#include "launch/process/mpirun.h"
#include "launch/process/subprocess.h"
#include "launch/terminal.h"
#include "tests/bench/bench.h"

namespace pal::bench {
namespace {

using nlohmann::json;

constexpr int kRanks = 2, kChecked = 20;
constexpr double kAgreement = 1e-8;

// Weights and batches for both sides.
void write_input(const std::string& folder, int64_t projector, int64_t batch, int64_t side, at::ScalarType dtype) {
  auto comm = comm::make_local_comm();
  model::ModelSpec spec = bench_step_model(projector);
  spec.dtype = dtype;
  const auto encoder = model::make_encoder(spec, *comm);
  ops::NamedTensors tensors = model::model_state(*encoder);
  for (int64_t k = 0; k < 4; ++k) {
    for (int64_t view = 0; view < 2; ++view) {
      at::Tensor images = at::empty({batch, 3, side, side}, at::kDouble);
      Random random(1, Purpose::bench, static_cast<uint64_t>(k), 0, static_cast<uint32_t>(view));
      double* p = images.data_ptr<double>();
      for (int64_t i = 0; i < images.numel(); ++i) p[i] = random.normal();
      tensors.emplace_back(fmt::format("batch.{}.view.{}", k, view), images.to(dtype));
    }
  }
  io::write_safetensors(folder + "/input.safetensors", tensors,
                        {{"lr", "0.002"},
                         {"momentum", "0.9"},
                         {"weight_decay", "0"},
                         {"stem", "cifar"},
                         {"views", "separate"},
                         {"projector", std::to_string(projector)}});
}

void import_images(const std::string& folder, const std::string& source) {
  data::ImportOptions options;
  options.source = source;
  options.out = folder + "/set.h5";
  data::import_idx(options);
}

// Both sides of one comparison; they end with this object.
class Sides {
 public:
  Sides(const StepCase& c, const StepBenchOptions& o, const std::string& program, const std::string& folder,
        const std::string& dtype) {
    for (int r = 0; r < kRanks; ++r) {
      const std::string pipe = fmt::format("{}/go.{}", folder, r);
      PAL_CHECK(mkfifo(pipe.c_str(), 0600) == 0, "no pipe can be made", pipe, "set TMPDIR to a local folder");
    }
    std::vector<std::string> ours = {"mpirun"};
    for (const std::string& option : launch::mpirun_options(launch::host_facts(), kRanks, 1)) ours.push_back(option);
    ours.insert(ours.end(), {"-np", std::to_string(kRanks), program, "step", "--rank-in", folder, "--dtype", dtype});
    ours_ = std::make_unique<launch::Subprocess>(ours);
    ours_->read_line();  // ready
    for (int r = 0; r < kRanks; ++r) go_.emplace_back(fmt::format("{}/go.{}", folder, r));
    std::vector<std::string> peer = {o.peer.python, o.peer.script + "/" + c.script,
                                     "--input",     c.projector > 0 ? folder + "/input.safetensors" : o.images,
                                     "--packages",  o.peer.packages,
                                     "--dtype",     dtype,
                                     "--ranks",     std::to_string(kRanks),
                                     "--bind",      "--serve"};
    if (o.peer_layout == "channels_last") peer.push_back("--channels-last");
    peer_ = std::make_unique<launch::Subprocess>(peer);
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
  // Ends both sides; returns the peak memory of each rank 0 in MB.
  std::pair<double, double> end() {
    for (std::ofstream& go : go_) go << 0 << std::endl;
    peer_->write_line("end");
    const json a = json::parse(ours_->read_line()), b = json::parse(peer_->read_line());
    ours_->wait();
    peer_->wait();
    return {a["peak_mb"], b["peak_mb"]};
  }

 private:
  std::unique_ptr<launch::Subprocess> ours_, peer_;
  std::vector<std::ofstream> go_;
};

// The largest relative difference of the first losses in float64.
double compare_losses(const StepCase& c, const StepBenchOptions& options, const std::string& program) {
  const launch::BenchFolder folder;
  write_input(folder.path, c.checked_projector, options.check_batch, 16, at::kDouble);
  Sides sides(c, options, program, folder.path, "float64");
  const std::vector<double> a = sides.ours(kChecked)["losses"], b = sides.peer(kChecked)["losses"];
  sides.end();
  double worst = 0;
  for (int k = 0; k < kChecked; ++k) worst = std::max(worst, std::abs(a[k] - b[k]) / std::max(1.0, std::abs(b[k])));
  return worst;
}

json measure(const StepCase& c, const StepBenchOptions& options, const std::string& program) {
  json params = {{"batch", c.batch}, {"loss", "vicreg"}, {"peer_layout", options.peer_layout}};
  if (c.projector > 0) {
    fmt::print("{}: {} steps of both sides in float64, batch {}, projector {}\n", c.name, kChecked, options.check_batch,
               c.checked_projector);
    std::fflush(stdout);
    const double difference = compare_losses(c, options, program);
    fmt::print("largest relative difference {:.1e} (must be below {:.0e})\n", difference, kAgreement);
    PAL_CHECK_CODE(Exit::check_failed, difference < kAgreement, "the two sides do not compute the same; difference",
                   difference, "nothing was timed");
    params["loss_difference_float64"] = difference;
    params["projector"] = c.projector;
  }
  const int steps = options.steps_per_turn > 0 ? options.steps_per_turn : c.steps_per_turn;
  fmt::print("{}: {} turns of {} steps each in float32, batch {}\n", c.name, options.turns, steps, c.batch);
  std::fflush(stdout);
  const launch::BenchFolder folder;
  if (c.projector > 0) {
    write_input(folder.path, c.projector, c.batch, 32, at::kFloat);
  } else {
    import_images(folder.path, options.images);
  }
  Sides sides(c, options, program, folder.path, "float32");
  for (int k = 0; k < 2; ++k) {  // warm-up; the second turn gives the time estimate
    const double a = sides.ours(1)["ms"][0], b = sides.peer(1)["ms"][0];
    if (k == 1)
      fmt::print("a step of ours took {:.0f} ms, one of the peer {:.0f}: about {:.0f} s to go\n", a, b,
                 options.turns * steps * (a + b) / 1000);
    std::fflush(stdout);
  }
  std::vector<double> ours, peer, ratios, hidden, sync;
  json last_ours, last_peer;
  for (int t = 0; t < options.turns; ++t) {
    last_ours = sides.ours(steps);
    last_peer = sides.peer(steps);
    ours.push_back(launch::median(last_ours["ms"]));
    peer.push_back(launch::median(last_peer["ms"]));
    ratios.push_back(peer.back() / ours.back());
    fmt::print("turn {} of {}: ours {:.1f} ms, peer {:.1f}\n", t + 1, options.turns, ours.back(), peer.back());
    std::fflush(stdout);
    if (last_ours.contains("sync_hidden")) hidden.push_back(last_ours["sync_hidden"]);
    if (last_ours.contains("sync_ms")) sync.push_back(last_ours["sync_ms"]);
  }
  const auto [ours_mb, peer_mb] = sides.end();
  json result = {{"name", c.name},
                 {"params", params},
                 {"ours_ms", launch::median(ours)},
                 {"peer", "PyTorch DDP gloo"},
                 {"peer_ms", launch::median(peer)},
                 {"ratio", launch::median(ratios)},
                 {"noise", std::max(launch::noise(ours), launch::noise(peer))},
                 {"ours_peak_mb", ours_mb},
                 {"peer_peak_mb", peer_mb},
                 {"ours_samples_ms", ours},
                 {"peer_samples_ms", peer}};
  if (!hidden.empty()) result["ours_sync_hidden"] = launch::median(hidden);
  if (!sync.empty()) result["ours_sync_ms"] = launch::median(sync);
  if (last_ours.contains("loss_bytes")) result["ours_loss_bytes"] = last_ours["loss_bytes"];
  if (last_peer.contains("loss_bytes")) result["peer_loss_bytes"] = last_peer["loss_bytes"];
  return result;
}

std::vector<std::string> table_row(const json& r) {
  const auto bytes = [&](const char* key) {
    return r.contains(key) ? fmt::format("{:.0f}", r[key].get<double>() / 1024) : std::string("-");
  };
  return {r["name"],
          fmt::format("{:.1f}", r["ours_ms"].get<double>()),
          fmt::format("{:.1f}", r["peer_ms"].get<double>()),
          fmt::format("{:.3f}", r["ratio"].get<double>()),
          fmt::format("{:.3f}", r["noise"].get<double>()),
          fmt::format("{:.0f}", r["ours_peak_mb"].get<double>()),
          fmt::format("{:.0f}", r["peer_peak_mb"].get<double>()),
          bytes("ours_loss_bytes"),
          bytes("peer_loss_bytes"),
          launch::verdict(r["ratio"], r["noise"])};
}

}  // namespace

const std::vector<StepCase>& step_cases() {
  static const std::vector<StepCase> cases = {{"resnet18", "ddp_step.py", 512, 512, 32, 2},
                                              {"projector", "ddp_step.py", 8192, 1024, 32, 1},
                                              {"quickstart", "ddp_quickstart.py", 0, 0, 256, 12}};
  return cases;
}

model::ModelSpec bench_step_model(int64_t projector) {
  model::ModelSpec spec;
  spec.backbone = model::BackboneKind::resnet18;
  spec.projector = {projector, projector, projector};
  spec.batch_norm = model::BatchNormScope::
      off;  // DDP has no synchronized batch norm on the CPU: each rank's own statistics, on both sides
  return spec;
}

int bench_step(const StepBenchOptions& options, const std::string& program) {
  std::vector<std::vector<std::string>> rows = {
      {"step", "ours ms", "peer ms", "ratio", "noise", "ours MB", "peer MB", "ours loss kB", "peer loss kB", ""}};
  json out = {
      {"machine",
       {{"cpu", launch::proc_field("/proc/cpuinfo", "model name")}, {"ranks", kRanks}, {"threads_per_rank", 1}}},
      {"results", json::array()}};
  for (const StepCase& c : step_cases()) {
    if (!options.cases.empty() && std::find(options.cases.begin(), options.cases.end(), c.name) == options.cases.end())
      continue;
    launch::PeerOptions peer = options.peer;
    peer.script += "/" + c.script;
    launch::check_peer_files(peer);
    launch::install_peer(peer);
    out["results"].push_back(measure(c, options, program));
    rows.push_back(table_row(out["results"].back()));
    if (!options.json.empty()) io::write_file_atomically(options.json, out.dump(2) + "\n");
  }
  fmt::print(
      "{}ratio = peer / ours, larger is better; loss kB: what the loss's collectives leave on a rank in a step\n",
      launch::format_table(rows));
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::bench
