// checkpoint: how long a checkpoint blocks the training thread, ours against PyTorch's, in turns in one run.
//
// The state of ResNet-50 with an 8192³ projector and momentum: 1.4 GB, on one rank. Each turn waits until the files are
// written, so that sides do not share the disk.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "core/io/files.h"
#include "core/model/encoder.h"
#include "core/model/state.h"
#include "core/optim/optimizer.h"
#include "dist/train/checkpointer.h"
#include "kernels/base/error.h"
#include "launch/process/machine.h"
#include "launch/process/subprocess.h"
#include "launch/terminal.h"
#include "tests/bench/bench.h"

namespace pal::bench {
namespace {

using nlohmann::json;

struct Way {
  const char* word;  // command of the peer's script
  const char* name;
};
constexpr Way kWays[] = {
    {"save", "torch.save"}, {"dcp", "DCP async_save"}, {"dcp-kept", "DCP async_save, buffer kept"}};

model::ModelSpec saved_model(BenchSizes sizes) {
  model::ModelSpec spec;
  spec.backbone = sizes == BenchSizes::small ? model::BackboneKind::resnet18 : model::BackboneKind::resnet50;
  spec.stem = model::Stem::imagenet;
  spec.projector = std::vector<int64_t>(3, sizes == BenchSizes::small ? 64 : 8192);
  return spec;
}

}  // namespace

int bench_checkpoint(const CheckpointBenchOptions& options) {
  launch::check_peer_files(options.peer);
  const launch::BenchFolder temporary;
  const std::string folder = options.folder.empty() ? temporary.path : options.folder;
  const auto comm = comm::make_local_comm();
  const auto encoder = model::make_encoder(saved_model(options.sizes), *comm);
  const auto optimizer = optim::make_optimizer({}, model::trainable(*encoder));
  const dist::Checkpointer::Groups state = {{"model", model::model_state(*encoder)}, {"optim", optimizer->state()}};
  json shapes = json::array();
  double bytes = 0;
  for (const auto& [group, tensors] : state) {
    for (const auto& [name, t] : tensors) {
      shapes.push_back({group + "." + name, t.sizes().vec()});
      bytes += static_cast<double>(t.nbytes());
    }
  }
  io::write_file_atomically(folder + "/shapes.json", shapes.dump());
  std::string failed;
  dist::Checkpointer ours(
      {folder, 1, options.threads, [&](const std::string& w) { failed = w; }, nullptr, record::kSmallestShare}, *comm,
      state);
  launch::Subprocess peer(
      {options.peer.python, options.peer.script, "--shapes", folder + "/shapes.json", "--out", folder});
  const json ready = json::parse(peer.read_line());
  fmt::print("a state of {:.2f} GB; ms until training may continue, {} turns of each side\n", bytes / 1e9,
             options.turns);
  std::fflush(stdout);

  std::vector<double> mine, written;
  std::vector<std::vector<double>> theirs(std::size(kWays));
  for (int turn = -1; turn < options.turns; ++turn) {  // turn −1 warms up
    record::CheckpointState now;
    now.step = turn + 2;
    const auto start = std::chrono::steady_clock::now();
    ours.save(now);
    PAL_CHECK(ours.drain(), "our checkpoint is not written", failed, "make room there");
    const double total = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (turn >= 0) {
      mine.push_back(ours.blocked_ms());
      written.push_back(total);
    }
    for (size_t k = 0; k < std::size(kWays); ++k) {
      peer.write_line(kWays[k].word);
      const double ms = json::parse(peer.read_line())["ms"];
      if (turn >= 0) theirs[k].push_back(ms);
    }
  }
  peer.write_line("end");
  const double peer_mb = json::parse(peer.read_line())["peak_mb"];
  peer.wait();

  std::vector<std::vector<std::string>> rows = {{"checkpoint", "ours ms", "peer ms", "ratio", "noise"}};
  json results = json::array();
  for (size_t k = 0; k < std::size(kWays); ++k) {
    const double ratio = launch::median(theirs[k]) / launch::median(mine),
                 spread = std::max(launch::noise(mine), launch::noise(theirs[k]));
    rows.push_back({kWays[k].name, fmt::format("{:.0f}", launch::median(mine)),
                    fmt::format("{:.0f}", launch::median(theirs[k])), fmt::format("{:.2f}", ratio),
                    fmt::format("{:.2f}", spread)});
    results.push_back(
        {{"name", "checkpoint"},
         {"params", {{"bytes", bytes}, {"ranks", 1}, {"threads", options.threads}, {"torch", ready["torch"]}}},
         {"ours_ms", launch::median(mine)},
         {"peer", kWays[k].name},
         {"peer_ms", launch::median(theirs[k])},
         {"ratio", ratio},
         {"noise", spread},
         {"ours_written_ms", launch::median(written)},
         {"ours_peak_mb", launch::peak_memory_mb()},
         {"peer_peak_mb", peer_mb},
         {"ours_samples_ms", mine},
         {"peer_samples_ms", theirs[k]}});
  }
  fmt::print("{}ratio = peer / ours, larger is better; ours was on disk, synced and hashed, after {:.1f} s\n",
             launch::format_table(rows), launch::median(written) / 1000);
  if (!options.json.empty()) {
    io::write_file_atomically(
        options.json,
        json{{"machine", {{"cpu", launch::proc_field("/proc/cpuinfo", "model name")}}}, {"results", results}}.dump(2) +
            "\n");
  }
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::bench
