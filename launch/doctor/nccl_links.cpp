#include "launch/doctor/nccl_links.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/io/files.h"
#include "kernels/base/error.h"
#include "launch/process/mpirun.h"
#include "launch/terminal.h"

#ifdef PAL_WITH_CUDA
#include "dist/comm/nccl_probe.h"
#endif

namespace pal::launch {

// What nvidia-smi says about NVLink, PCIe and NUMA.
std::string driver_topology() {
  std::string text;
  FILE* pipe = popen("nvidia-smi topo -m 2>/dev/null", "r");
  if (pipe == nullptr) return text;
  char buffer[4096];
  while (const size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) text.append(buffer, n);
  return pclose(pipe) == 0 ? text : "";
}

std::vector<std::string> link_rank_arguments(const LinkOptions& options) {
  std::vector<std::string> args = {"doctor",       "--link-rank",
                                   "--most-bytes", std::to_string(options.most_bytes),
                                   "--repeats",    std::to_string(options.repeats)};
  if (!options.json.empty()) args.insert(args.end(), {"--json", options.json});
  return args;
}

#ifndef PAL_WITH_CUDA

int measure_links(const dist::CudaState& cuda, const std::string&, const LinkOptions&) {
  fmt::print("\nGPUs and NCCL were not checked: {}.\n", cuda.reason);
  return static_cast<int>(Exit::ok);
}
int be_a_link_rank(dist::World&, const LinkOptions&) { return static_cast<int>(Exit::bug); }
std::vector<std::vector<std::string>> visible_devices() { return {}; }

#else

namespace {

nlohmann::ordered_json as_json(const std::vector<dist::ProbeRow>& rows, int ranks, const std::string& device) {
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const dist::ProbeRow& r : rows) {
    results.push_back({{"name", "nccl all_reduce"},
                       {"params", {{"bytes", r.bytes}, {"ranks", ranks}, {"type", "float32"}}},
                       {"ours_ms", 1e3 * r.out_of_place.seconds},
                       {"in_place_ms", 1e3 * r.in_place.seconds},
                       {"algbw_gbs", dist::algorithm_bandwidth(r.bytes, r.out_of_place.seconds)},
                       {"busbw_gbs", dist::bus_bandwidth(r.bytes, r.out_of_place.seconds, ranks)},
                       {"wrong", r.out_of_place.wrong + r.in_place.wrong}});
  }
  return {{"machine", {{"device", device}, {"devices", ranks}}}, {"results", results}};
}

}  // namespace

int measure_links(const dist::CudaState& cuda, const std::string& program, const LinkOptions& options) {
  if (!cuda.reason.empty()) {
    fmt::print(
        "\nGPUs and NCCL: {}.\n"
        "Not checked: the devices' links and peer access, NCCL's sums, and its bandwidth over sizes.\n",
        cuda.reason);
    return static_cast<int>(Exit::ok);
  }
  fmt::print("\nDevices (NCCL {}):\n{}", cuda.nccl, format_table(visible_devices()));
  if (const std::string topology = driver_topology(); !topology.empty())
    fmt::print("\nnvidia-smi topo -m:\n{}", topology);
  std::fflush(stdout);
  const int code = run_under_mpirun(program, link_rank_arguments(options), cuda.devices, 1);
  if (code == static_cast<int>(Exit::ok)) return code;
  fmt::print(
      "NCCL: the job of {} rank(s), one per device, failed with exit code {}; NCCL_DEBUG=INFO prints more (pal help "
      "nccl)\n",
      cuda.devices, code);
  return static_cast<int>(Exit::check_failed);
}

std::vector<std::vector<std::string>> visible_devices() { return dist::device_table(); }

int be_a_link_rank(dist::World& world, const LinkOptions& options) {
  dist::NcclProbeOptions probe;
  probe.most_bytes = options.most_bytes;
  probe.repeats = options.repeats;
  const std::vector<dist::ProbeRow> rows = dist::probe_world(world.local_rank(), probe);
  if (world.rank() == 0) {
    fmt::print("\nall-reduce between {} device(s):\n{}{}\n", world.size(),
               format_table(dist::probe_table(rows, world.size())), dist::probe_verdict(rows, world.size()));
    std::fflush(stdout);
    if (!options.json.empty())
      io::write_file_atomically(options.json, as_json(rows, world.size(), dist::device_table()[1][1]).dump(2) + "\n");
  }
  return static_cast<int>(dist::probe_passed(rows) ? Exit::ok : Exit::check_failed);
}

#endif

}  // namespace pal::launch
