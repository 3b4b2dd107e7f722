// data: loading JPEG files into two VICReg views, ours against torchvision's DataLoader and FFCV; then a slow disk, a
// cold cache, and a data set as large as ImageNet.
//
// The peer's script writes the files once, and the parent copies the same bytes into a shard. In a turn a side loads
// every file once, with two threads or workers. Before timing, our crops of real images must equal torchvision's within
// 2/255.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/data/shard_writer.h"
#include "core/io/files.h"
#include "kernels/base/error.h"
#include "launch/process/machine.h"
#include "launch/process/subprocess.h"
#include "launch/terminal.h"
#include "tests/bench/bench.h"

namespace pal::bench {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr double kAgreement = 2.0;  // in steps of 1/255

// Writes the files of `folder` into one shard, bytes unchanged.
void write_shard(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder + "/files")) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  data::ShardSpec spec;
  spec.encoding = data::Encoding::jpeg;
  spec.shape = {0, 0, 3};
  data::ShardWriter writer(folder + "/shard.h5", spec);
  for (const std::string& file : files) {
    const std::string bytes = io::read_whole_file(file);
    writer.append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), -1, file});
  }
  writer.finish();
  writer.publish();
}

// A side and its turns.
struct DataSide {
  std::string name;
  std::unique_ptr<launch::Subprocess> child;
  std::vector<double> ms, cpu_ms;  // per image
  double peak_mb = 0;

  json ask(const std::string& line) {
    child->write_line(line);
    return json::parse(child->read_line());
  }
  void turn(const std::string& how = "turn") {
    const json a = ask(how);
    const double images = a["images"];
    ms.push_back(1000 * a["seconds"].get<double>() / images);
    cpu_ms.push_back(1000 * a["cpu_seconds"].get<double>() / images);
  }
  void forget_turns() {
    ms.clear();
    cpu_ms.clear();
  }
  void end() {
    peak_mb = ask("end")["peak_mb"];
    child->wait();
  }
};

DataSide start_ours(const DataBenchOptions& o, const std::string& folder, const std::string& program) {
  DataSide side{"ours",
                std::make_unique<launch::Subprocess>(std::vector<std::string>{
                    program, "data", "--side-in", folder, "--size", std::to_string(o.size), "--batch",
                    std::to_string(o.batch), "--threads", std::to_string(o.threads)}),
                {},
                {},
                0};
  side.child->read_line();
  return side;
}

// Without a child the peer is not available, with the reason.
DataSide start_peer(const DataBenchOptions& o, const std::string& folder, const std::string& name) {
  DataSide side{name == "ffcv" ? "FFCV, crop and flip alone" : "torchvision, " + name,
                std::make_unique<launch::Subprocess>(std::vector<std::string>{
                    o.peer.python, o.peer.script, "--packages", o.peer.packages, "--serve", folder + "/files", "--peer",
                    name, "--size", std::to_string(o.size), "--batch", std::to_string(o.batch), "--workers",
                    std::to_string(o.threads)}),
                {},
                {},
                0};
  const json answer = json::parse(side.child->read_line());
  if (answer["ready"].get<bool>()) return side;
  side.child->wait();
  side.child.reset();
  fmt::print("{} is left out: {}\n", side.name, answer["why"].get<std::string>());
  return side;
}

std::vector<double> ratios(const std::vector<double>& peer, const std::vector<double>& ours) {
  std::vector<double> r;
  for (size_t k = 0; k < ours.size(); ++k) r.push_back(peer[k] / ours[k]);
  return r;
}

void print_breakdown(const json& parts) {
  double sum = 0;
  for (const auto& [name, ms] : parts.items()) sum += ms.get<double>();
  std::vector<std::vector<std::string>> rows = {{"of a CPU-second", "ms an image", "share"}};
  for (const char* name : {"read", "decode", "resize", "color", "blur", "copy"}) {
    const double ms = parts[name];
    rows.push_back({name, fmt::format("{:.3f}", ms), fmt::format("{:.1f} %", 100 * ms / sum)});
  }
  fmt::print(
      "\n{}resize includes normalizing and storing; nothing is copied: a view is rendered where the trainer reads it\n",
      launch::format_table(rows));
}

// Our loader with a disk that delivers as many images per second as one thread uses, with and without read-ahead.
json slow_disk(DataSide& ours) {
  const json answer = ours.ask("slow");
  const std::vector<double> with = answer["readers_1"], without = answer["readers_0"];
  fmt::print(
      "\nslow disk ({:.1f} MB/s, {:.0f} images/s), one worker: {:.0f} images/s with reading ahead, {:.0f} without: "
      "{:.2f} times (2 at best)\n",
      answer["mb_s"].get<double>(), answer["disk_images_s"].get<double>(), launch::median(with),
      launch::median(without), launch::median(ratios(with, without)));
  return answer;
}

// Runs everything but the large set; adds to `out`.
void compare_with_peers(json& out, const DataBenchOptions& options, const std::string& program) {
  launch::check_peer_files(options.peer);
  launch::install_peer(options.peer);
  const launch::BenchFolder folder;
  fs::create_directories(folder.path + "/files");
  fmt::print("making {} JPEG files of 348 to 500 pixels\n", options.images);
  std::fflush(stdout);
  const std::vector<std::string> make = {options.peer.python,
                                         options.peer.script,
                                         "--packages",
                                         options.peer.packages,
                                         "--make",
                                         folder.path + "/files",
                                         "--images",
                                         std::to_string(options.images)};
  PAL_CHECK(launch::Subprocess(make).wait() == 0, "the files cannot be made in", folder.path,
            "the output of the script is above");
  write_shard(folder.path);

  DataSide ours = start_ours(options, folder.path, program);
  std::vector<DataSide> peers;
  for (const char* name : {"PIL", "tensors", "ffcv"}) {
    DataSide peer = start_peer(options, folder.path, name);
    if (peer.child) peers.push_back(std::move(peer));
  }
  ours.ask("views " + folder.path + "/views.safetensors");
  const json apart = peers[1].ask("compare " + folder.path + "/views.safetensors");
  fmt::print(
      "pixels: our crops are torchvision's decode, crop and resize within {:.2f}/255 (mean {:.3f}, must be within "
      "{:.0f})\n",
      apart["worst"].get<double>(), apart["mean"].get<double>(), kAgreement);
  PAL_CHECK_CODE(Exit::check_failed, apart["worst"] <= kAgreement,
                 "ours and torchvision do not make the same pixels; difference in steps of 1/255",
                 apart["worst"].get<double>(), "nothing was timed");

  const auto all_turn = [&] {
    ours.turn();
    for (DataSide& peer : peers) peer.turn();
  };
  all_turn();  // warm-up
  ours.forget_turns();
  for (DataSide& peer : peers) peer.forget_turns();
  for (int t = 0; t < options.turns; ++t) all_turn();
  json results = json::array();
  std::vector<std::vector<std::string>> rows = {
      {"two views of a JPEG", "ms an image", "images/s", "CPU ms an image", "ratio", "CPU ratio", "noise", "peak MB"}};
  const auto row = [&](DataSide& side) {
    const double r = launch::median(ratios(side.ms, ours.ms)), c = launch::median(ratios(side.cpu_ms, ours.cpu_ms)),
                 spread = std::max(launch::noise(side.ms), launch::noise(ours.ms));
    rows.push_back({side.name, fmt::format("{:.3f}", launch::median(side.ms)),
                    fmt::format("{:.0f}", 1000 / launch::median(side.ms)),
                    fmt::format("{:.3f}", launch::median(side.cpu_ms)), fmt::format("{:.2f}", r),
                    fmt::format("{:.2f}", c), fmt::format("{:.3f}", spread), fmt::format("{:.0f}", side.peak_mb)});
    if (&side == &ours) return;
    results.push_back({{"name", "data"},
                       {"params",
                        {{"images", options.images},
                         {"size", options.size},
                         {"batch", options.batch},
                         {"threads", options.threads},
                         {"difference_255", apart}}},
                       {"ours_ms", launch::median(ours.ms)},
                       {"peer", side.name},
                       {"peer_ms", launch::median(side.ms)},
                       {"ratio", r},
                       {"noise", spread},
                       {"ours_cpu_ms", launch::median(ours.cpu_ms)},
                       {"peer_cpu_ms", launch::median(side.cpu_ms)},
                       {"cpu_ratio", c},
                       {"ours_peak_mb", ours.peak_mb},
                       {"peer_peak_mb", side.peak_mb},
                       {"ours_samples_ms", ours.ms},
                       {"peer_samples_ms", side.ms}});
  };
  const json parts = ours.ask("parts");
  const json slow = slow_disk(ours);
  const json cold = ours.ask("cold");
  fmt::print("cold page cache: {:.0f} images/s with reading ahead, {:.0f} without; warm {:.0f}\n\n",
             launch::median(cold["readers_1"].get<std::vector<double>>()),
             launch::median(cold["readers_0"].get<std::vector<double>>()), 1000 / launch::median(ours.ms));
  ours.end();
  for (DataSide& peer : peers) peer.end();
  row(ours);
  for (DataSide& peer : peers) row(peer);
  fmt::print("{}ratio = peer / ours, larger is better; {} threads or workers a side\n", launch::format_table(rows),
             options.threads);
  print_breakdown(parts);
  out["results"] = results;
  out["parts_ms"] = parts;
  out["slow_disk"] = slow;
  out["cold"] = cold;
}

}  // namespace

int bench_data(const DataBenchOptions& options, const std::string& program) {
  json out = {{"machine", {{"cpu", launch::proc_field("/proc/cpuinfo", "model name")}, {"threads", options.threads}}},
              {"results", json::array()}};
  if (options.images > 0) compare_with_peers(out, options, program);
  if (options.records > 0) out["large_set"] = json::parse(bench_large_set(options, program));
  if (!options.json.empty()) io::write_file_atomically(options.json, out.dump(2) + "\n");
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::bench
