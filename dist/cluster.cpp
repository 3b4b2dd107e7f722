#include "dist/cluster.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "core/config/source.h"
#include "core/nearest.h"
#include "kernels/base/error.h"

namespace pal {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12, kMicro = 1e-6, kHour = 3600;

// Latencies per step and the time to start a collective: NCCL's own model (LL128; for P100 over Ethernet its Simple
// protocol). Failures: the Llama 3 report counts 419 unexpected stops of 2,048 nodes in 54 days.
std::vector<Cluster> make_presets() {
  Cluster a100;
  a100.name = "a100-8";
  a100.gpu = "8 x A100-SXM4-80GB, NVSwitch, 8 x InfiniBand HDR 200 Gbit/s";
  a100.fabric = {8, {1.9 * kMicro, 235 * kGiga}, {4 * kMicro, 180 * kGiga}, 10 * kMicro};
  a100.bf16 = {312 * kTera, 0.194, 0.7};     // convolutions: 2,470 images/s of ResNet-50, NVIDIA's own figure
  a100.full = {156 * kTera, 0.147, 0.1};     // TF32 convolutions (938 images/s), FP32 products
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
  h100.bf16 = {989 * kTera, 0.123, 0.6};     // convolutions: twice an A100, as Lambda reports for vision models
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

ClusterKey plain(const char* name, double Cluster::*number, double unit, const char* help) {
  ClusterKey key{name, help};
  key.number = number;
  key.unit = unit;
  return key;
}
ClusterKey link_key(const char* name, CommLink Fabric::*of, double CommLink::*link, double unit, const char* help) {
  ClusterKey key{name, help};
  key.of = of;
  key.link = link;
  key.unit = unit;
  return key;
}
ClusterKey rate_key(const char* name, Rate Cluster::*precision, double Rate::*rate, double unit, const char* help) {
  ClusterKey key{name, help};
  key.precision = precision;
  key.rate = rate;
  key.unit = unit;
  return key;
}

double& place(Cluster& cluster, const ClusterKey& key) {
  if (key.number != nullptr) return cluster.*key.number;
  if (key.of != nullptr) return (cluster.fabric.*key.of).*key.link;
  if (key.precision != nullptr) return (cluster.*key.precision).*key.rate;
  return cluster.fabric.*key.fabric;
}

void take(Cluster& cluster, const Setting& setting) {
  const std::string value = setting.items.empty() ? "" : setting.items[0];
  PAL_CHECK(setting.shape == Setting::Shape::scalar, setting.origin + ": " + setting.key + " is not one value", printable(value), "give one");
  if (setting.key == "name" || setting.key == "gpu") {
    (setting.key == "name" ? cluster.name : cluster.gpu) = value;
    return;
  }
  char* end = nullptr;
  errno = 0;
  const double number = std::strtod(value.c_str(), &end);
  const bool good = !value.empty() && *end == 0 && errno == 0 && std::isfinite(number) && number >= 0;
  if (setting.key == "gpus_per_node") {
    PAL_CHECK(good && number >= 1 && number <= 1024 && number == std::floor(number), setting.origin + ": gpus_per_node is", printable(value), "give 1 to 1024");
    cluster.fabric.per_node = static_cast<int>(number);
    return;
  }
  std::vector<std::string> names = {"preset", "name", "gpu", "gpus_per_node"};
  for (const ClusterKey& key : cluster_keys()) {
    names.push_back(key.name);
    if (key.name != setting.key) continue;
    const bool may_be_zero = key.link == &CommLink::alpha || key.fabric != nullptr || key.number == &Cluster::loader_rate || key.number == &Cluster::kernel_seconds ||
                             key.number == &Cluster::restart_seconds || key.number == &Cluster::context_bytes;
    PAL_CHECK(good && (number > 0 || may_be_zero), setting.origin + ": " + setting.key + " is", printable(value), may_be_zero ? "give a number of at least 0" : "give a number above 0");
    place(cluster, key) = number * key.unit;
    return;
  }
  PAL_CHECK(false, setting.origin + ": unknown key of a cluster file", printable(setting.key), "the nearest is " + nearest_name(setting.key, names) + " (pal help scale lists them)");
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
  static const std::vector<ClusterKey> keys = [] {
    std::vector<ClusterKey> k = {
        link_key("node_latency_us", &Fabric::node, &CommLink::alpha, kMicro, "a step of a ring between GPUs of a node"),
        link_key("node_gb_per_s", &Fabric::node, &CommLink::beta, kGiga, "what a GPU sends to its neighbours in the node"),
        link_key("network_latency_us", &Fabric::network, &CommLink::alpha, kMicro, "a step between nodes"),
        link_key("network_gb_per_s", &Fabric::network, &CommLink::beta, kGiga, "what ALL cards of a node send together"),
        rate_key("full_tflops", &Cluster::full, &Rate::peak, kTera, "peak with train.precision=full"),
        rate_key("full_conv_efficiency", &Cluster::full, &Rate::conv, 1, "share of it that convolutional training reaches"),
        rate_key("full_matmul_efficiency", &Cluster::full, &Rate::matmul, 1, "share that matrix products reach"),
        rate_key("bf16_tflops", &Cluster::bf16, &Rate::peak, kTera, "peak with train.precision=bf16"),
        rate_key("bf16_conv_efficiency", &Cluster::bf16, &Rate::conv, 1, "as above"),
        rate_key("bf16_matmul_efficiency", &Cluster::bf16, &Rate::matmul, 1, "as above"),
        plain("memory_gb", &Cluster::memory_bytes, kGiga, "memory of a GPU"),
        plain("memory_gb_per_s", &Cluster::memory_rate, kGiga, "how fast it is"),
        plain("kernel_us", &Cluster::kernel_seconds, kMicro, "least time of a layer"),
        plain("context_gb", &Cluster::context_bytes, kGiga, "what the libraries take of a GPU"),
        plain("loader_per_s", &Cluster::loader_rate, 1, "samples/s that a node can load; 0: no limit"),
        plain("copy_gb_per_s", &Cluster::copy_rate, kGiga, "a GPU's state to the host"),
        plain("storage_gb_per_s", &Cluster::storage_rate, kGiga, "what a node writes to the shared file system"),
        plain("node_mtbf_hours", &Cluster::node_mtbf, kHour, "mean time between failures of one node"),
        plain("restart_s", &Cluster::restart_seconds, 1, "from a failure to the next step"),
    };
    ClusterKey call{"call_us", "what any collective costs to start"};
    call.fabric = &Fabric::call;
    call.unit = kMicro;
    k.insert(k.begin() + 4, call);
    return k;
  }();
  return keys;
}

double cluster_value(const Cluster& cluster, const ClusterKey& key) { return place(const_cast<Cluster&>(cluster), key) / key.unit; }

const std::vector<Cluster>& cluster_presets() {
  static const std::vector<Cluster> presets = make_presets();
  return presets;
}

Cluster read_cluster(const std::string& name_or_file) {
  if (const Cluster* preset = find_preset(name_or_file)) return *preset;
  PAL_CHECK(std::filesystem::exists(name_or_file), "no preset and no file", printable(name_or_file), "presets are " + preset_names() + "; pal help scale describes the file");
  const std::vector<Setting> settings = read_settings(name_or_file, Expand::everything);
  Cluster cluster = cluster_presets().front();
  cluster.name = std::filesystem::path(name_or_file).stem().string();
  for (const Setting& setting : settings) {
    if (setting.key != "preset") continue;
    const std::string name = setting.items.empty() ? "" : setting.items[0];
    const Cluster* preset = find_preset(name);
    PAL_CHECK(preset != nullptr, setting.origin + ": unknown preset", printable(name), "presets are " + preset_names());
    cluster = *preset;
  }
  for (const Setting& setting : settings) {
    if (setting.key != "preset") take(cluster, setting);
  }
  return cluster;
}

std::string cluster_text(const Cluster& cluster) {
  std::string out = fmt::format("name: {}\ngpu: \"{}\"\ngpus_per_node: {}\n", cluster.name, cluster.gpu, cluster.fabric.per_node);
  for (const ClusterKey& key : cluster_keys()) out += fmt::format("{}: {:.6g}   # {}\n", key.name, cluster_value(cluster, key), key.help);
  return out;
}

}  // namespace pal
