#include "dist/scale/cluster.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "core/config/source.h"
#include "core/config/suggest.h"
#include "kernels/base/error.h"

namespace pal::dist {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12, kMicro = 1e-6, kHour = 3600;

// Latencies per step and the time to start a collective: NCCL's own model (LL128; for P100 over Ethernet its Simple
// protocol). Failures: the Llama 3 report counts 419 unexpected stops of 2,048 nodes in 54 days.
std::vector<Cluster> make_presets() {
  Cluster a100;
  a100.name = "a100-8";
  a100.gpu = "8 x A100-SXM4-80GB, NVSwitch, 8 x InfiniBand HDR 200 Gbit/s";
  a100.fabric = {8, {1.9 * kMicro, 235 * kGiga}, {4 * kMicro, 180 * kGiga}, 10 * kMicro};
  a100.bf16 = {312 * kTera, 0.194, 0.7};  // convolutions: 2,470 images/s of ResNet-50, NVIDIA's own figure
  a100.full = {156 * kTera, 0.147, 0.1};  // TF32 convolutions (938 images/s), FP32 products
  a100.memory_bytes = 80 * kGiga;
  a100.memory_rate = 1.6e12;
  a100.kernel_seconds = 10 * kMicro;
  a100.context_bytes = 1.2 * kGiga;
  a100.copy_rate = 20 * kGiga;
  a100.storage_rate = 2 * kGiga;
  a100.node_mtbf = 54.0 * 24 * kHour * 2048 / 419;
  a100.restart_seconds = 120;

  Cluster h100 = a100;
  h100.name = "h100-8";
  h100.gpu = "8 x H100-SXM5-80GB, NVSwitch, 8 x InfiniBand NDR 400 Gbit/s";
  h100.fabric = {8, {1.9 * kMicro, 370 * kGiga}, {4 * kMicro, 360 * kGiga}, 10 * kMicro};
  h100.bf16 = {989 * kTera, 0.123, 0.6};  // convolutions: twice an A100, as Lambda reports for vision models
  h100.full = {495 * kTera, 0.093, 0.1};
  h100.memory_rate = 2.6e12;
  h100.copy_rate = 40 * kGiga;

  Cluster p100 = a100;
  p100.name = "p100-4";
  p100.gpu = "4 x P100, PCIe, RoCE 25 Gbit/s";
  // The network's share of its 25 Gbit/s is fitted to one published point: published_points.cpp.
  p100.fabric = {4, {5.7 * kMicro, 10 * kGiga}, {9.6 * kMicro, 0.81 * 3.125 * kGiga}, 8.4 * kMicro};
  p100.bf16 = p100.full = {10.6 * kTera, 0.5, 0.7};
  p100.memory_bytes = 16 * kGiga;
  p100.memory_rate = 0.6e12;
  p100.copy_rate = 10 * kGiga;

  Cluster local;
  local.name = "local";
  local.gpu = "2 CPU ranks of one core each, shared memory (pal bench comm --cluster FILE measures yours)";
  local.fabric = {2, {2 * kMicro, 3 * kGiga}, {30 * kMicro, 1 * kGiga}, 0};
  local.bf16 = local.full = {130e9, 0.5, 0.8};
  local.memory_bytes = 12 * kGiga;
  local.memory_rate = 5 * kGiga;
  local.kernel_seconds = 20 * kMicro;
  local.context_bytes = 0.4 * kGiga;
  local.copy_rate = 3 * kGiga;
  local.storage_rate = 0.5 * kGiga;
  local.node_mtbf = a100.node_mtbf;
  local.restart_seconds = 5;
  return {a100, h100, p100, local};
}

std::optional<double> number(const std::string& value) {
  char* end = nullptr;
  errno = 0;
  const double parsed = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != 0 || errno != 0 || !std::isfinite(parsed) || parsed < 0) return std::nullopt;
  return parsed;
}

// Pieces of links: a key and its comment in a file.
struct PiecesKey {
  const char* name;
  const char* help;
};
constexpr PiecesKey kNodeLarger{"node_larger",
                                "messages from so many bytes on take so many us and go at so many GB/s; and so on"};
constexpr PiecesKey kNetworkLarger{"network_larger", "the same between nodes"};
constexpr PiecesKey kNodeGather{
    "node_gather", "the same, from 0 on, for collectives that add nothing up; else they go as all-reduces do"};

std::vector<CommPiece> read_pieces(const config::Setting& setting, double least_from) {
  std::vector<CommPiece> pieces;
  for (size_t k = 0; k < setting.items.size(); k += 3) {
    const auto item = [&](size_t i) {
      return k + i < setting.items.size() ? number(setting.items[k + i]) : std::nullopt;
    };
    const std::optional<double> from = item(0), latency = item(1), rate = item(2);
    PAL_CHECK(
        setting.shape == config::Setting::Shape::list && from && latency && rate && *rate > 0 && *from >= least_from,
        setting.origin + ": " + setting.key + " is not a list of pieces near {}", config::printable(setting.items[k]),
        "give three numbers each, by size: bytes from which on, us, GB/s");
    pieces.push_back({*from, *latency * kMicro, *rate * kGiga});
    least_from = *from + 1;
  }
  return pieces;
}

// Whether the setting is one of these.
bool take_pieces(Fabric& fabric, const config::Setting& setting) {
  if (setting.key == kNodeLarger.name) {
    fabric.node.larger = read_pieces(setting, 1);
  } else if (setting.key == kNetworkLarger.name) {
    fabric.network.larger = read_pieces(setting, 1);
  } else if (setting.key == kNodeGather.name) {
    std::vector<CommPiece> pieces = read_pieces(setting, 0);
    PAL_CHECK(!pieces.empty() && pieces[0].from == 0, setting.origin + ": node_gather begins at {} bytes",
              pieces.empty() ? 0 : pieces[0].from, "give what small messages take first");
    fabric.gather = CommLink{pieces[0].alpha, pieces[0].beta, {pieces.begin() + 1, pieces.end()}};
  } else {
    return false;
  }
  return true;
}

std::string pieces_text(const PiecesKey& key, const std::vector<CommPiece>& pieces) {
  std::string items;
  for (const CommPiece& p : pieces)
    items +=
        fmt::format("{}{:.0f}, {:.6g}, {:.6g}", items.empty() ? "" : ", ", p.from, p.alpha / kMicro, p.beta / kGiga);
  return items.empty() ? "" : fmt::format("{}: [{}]   # {}\n", key.name, items, key.help);
}
std::string pieces_text(const Fabric& fabric) {
  std::vector<CommPiece> gather;
  if (fabric.gather) gather = fabric.gather->larger;
  if (fabric.gather) gather.insert(gather.begin(), fabric.gather->at(0));
  return pieces_text(kNodeLarger, fabric.node.larger) + pieces_text(kNetworkLarger, fabric.network.larger) +
         pieces_text(kNodeGather, gather);
}

void take(Cluster& cluster, const config::Setting& setting) {
  if (take_pieces(cluster.fabric, setting)) return;
  const std::string value = setting.items.empty() ? "" : setting.items[0];
  PAL_CHECK(setting.shape == config::Setting::Shape::scalar, setting.origin + ": " + setting.key + " is not one value",
            config::printable(value), "give one");
  if (setting.key == "name" || setting.key == "gpu") {
    (setting.key == "name" ? cluster.name : cluster.gpu) = value;
    return;
  }
  const std::optional<double> given = number(value);
  if (setting.key == "gpus_per_node") {
    PAL_CHECK(given && *given >= 1 && *given <= 1024 && *given == std::floor(*given),
              setting.origin + ": gpus_per_node is {}", config::printable(value), "give 1 to 1024");
    cluster.fabric.per_node = static_cast<int>(*given);
    return;
  }
  std::vector<std::string> names = {
      "preset", "name", "gpu", "gpus_per_node", kNodeLarger.name, kNetworkLarger.name, kNodeGather.name};
  for (const ClusterKey& key : cluster_keys()) {
    names.push_back(key.name);
    if (key.name != setting.key) continue;
    const bool zero = key.least == ClusterKey::Least::zero;
    PAL_CHECK(given && (*given > 0 || zero), setting.origin + ": " + setting.key + " is {}", config::printable(value),
              zero ? "give a number of at least 0" : "give a number above 0");
    key.at(cluster) = *given * key.unit;
    return;
  }
  PAL_CHECK(false, setting.origin + ": unknown key of a cluster file", config::printable(setting.key),
            "the nearest is " + config::suggest(setting.key, names) + " (pal help scale lists them)");
}

std::string preset_names() {
  std::string out;
  for (const Cluster& c : cluster_presets()) out += (out.empty() ? "" : ", ") + c.name;
  return out;
}

const Cluster* find_preset(const std::string& name) {
  for (const Cluster& c : cluster_presets()) {
    if (c.name == name) return &c;
  }
  return nullptr;
}

}  // namespace

const std::vector<ClusterKey>& cluster_keys() {
  constexpr auto zero = ClusterKey::Least::zero, positive = ClusterKey::Least::above_zero;
  static const std::vector<ClusterKey> keys = {
      {"node_latency_us", [](Cluster& c) -> double& { return c.fabric.node.alpha; }, kMicro, zero,
       "a step of a ring between GPUs of a node"},
      {"node_gb_per_s", [](Cluster& c) -> double& { return c.fabric.node.beta; }, kGiga, positive,
       "what a GPU sends to its neighbors in the node"},
      {"network_latency_us", [](Cluster& c) -> double& { return c.fabric.network.alpha; }, kMicro, zero,
       "a step between nodes"},
      {"network_gb_per_s", [](Cluster& c) -> double& { return c.fabric.network.beta; }, kGiga, positive,
       "what ALL cards of a node send together"},
      {"call_us", [](Cluster& c) -> double& { return c.fabric.call; }, kMicro, zero,
       "what any collective costs to start"},
      {"full_tflops", [](Cluster& c) -> double& { return c.full.peak; }, kTera, positive,
       "peak with train.precision=full"},
      {"full_conv_efficiency", [](Cluster& c) -> double& { return c.full.conv; }, 1, positive,
       "share of it that convolutional training reaches"},
      {"full_matmul_efficiency", [](Cluster& c) -> double& { return c.full.matmul; }, 1, positive,
       "share that matrix products reach"},
      {"bf16_tflops", [](Cluster& c) -> double& { return c.bf16.peak; }, kTera, positive,
       "peak with train.precision=bf16"},
      {"bf16_conv_efficiency", [](Cluster& c) -> double& { return c.bf16.conv; }, 1, positive, "as above"},
      {"bf16_matmul_efficiency", [](Cluster& c) -> double& { return c.bf16.matmul; }, 1, positive, "as above"},
      {"memory_gb", [](Cluster& c) -> double& { return c.memory_bytes; }, kGiga, positive, "memory of a GPU"},
      {"memory_gb_per_s", [](Cluster& c) -> double& { return c.memory_rate; }, kGiga, positive, "how fast it is"},
      {"kernel_us", [](Cluster& c) -> double& { return c.kernel_seconds; }, kMicro, zero, "least time of a layer"},
      {"context_gb", [](Cluster& c) -> double& { return c.context_bytes; }, kGiga, zero,
       "what the libraries take of a GPU"},
      {"loader_per_s", [](Cluster& c) -> double& { return c.loader_rate; }, 1, zero,
       "samples/s that a node can load; 0: no limit"},
      {"copy_gb_per_s", [](Cluster& c) -> double& { return c.copy_rate; }, kGiga, positive,
       "a GPU's state to the host"},
      {"storage_gb_per_s", [](Cluster& c) -> double& { return c.storage_rate; }, kGiga, positive,
       "what a node writes to the shared file system"},
      {"node_mtbf_hours", [](Cluster& c) -> double& { return c.node_mtbf; }, kHour, positive,
       "mean time between failures of one node"},
      {"restart_s", [](Cluster& c) -> double& { return c.restart_seconds; }, 1, zero,
       "from a failure to the next step"},
  };
  return keys;
}

double cluster_value(Cluster cluster, const ClusterKey& key) { return key.at(cluster) / key.unit; }

const std::vector<Cluster>& cluster_presets() {
  static const std::vector<Cluster> presets = make_presets();
  return presets;
}

Cluster read_cluster(const std::string& name_or_file) {
  if (const Cluster* preset = find_preset(name_or_file)) return *preset;
  PAL_CHECK(std::filesystem::exists(name_or_file), "{} is neither a preset nor a file", config::printable(name_or_file),
            "presets are " + preset_names() + "; pal help scale describes the file");
  const std::vector<config::Setting> settings = config::read_settings(name_or_file, config::Expand::everything);
  Cluster cluster = cluster_presets().front();
  cluster.name = std::filesystem::path(name_or_file).stem().string();
  for (const config::Setting& setting : settings) {
    if (setting.key != "preset") continue;
    const std::string name = setting.items.empty() ? "" : setting.items[0];
    const Cluster* preset = find_preset(name);
    PAL_CHECK(preset != nullptr, setting.origin + ": unknown preset", config::printable(name),
              "presets are " + preset_names());
    cluster = *preset;
  }
  for (const config::Setting& setting : settings) {
    if (setting.key != "preset") take(cluster, setting);
  }
  return cluster;
}

std::string cluster_text(const Cluster& cluster) {
  std::string out =
      fmt::format("name: {}\ngpu: \"{}\"\ngpus_per_node: {}\n", cluster.name, cluster.gpu, cluster.fabric.per_node);
  for (const ClusterKey& key : cluster_keys())
    out += fmt::format("{}: {:.6g}   # {}\n", key.name, cluster_value(cluster, key), key.help);
  return out + pieces_text(cluster.fabric);
}

}  // namespace pal::dist
