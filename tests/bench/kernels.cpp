// kernels: the CPU kernels, forward and backward, or the graph store: each case against its peers in one run.
//
// For each case the parent writes the inputs into a folder and starts our side and every peer as a process that answers
// commands:
//   "check F"   run once, write the outputs to F.NAME (raw float32)   → {"outputs": [names], "value": v}
//   "go MS"     run repeatedly for MS milliseconds, at least once      → {"ms": [...]}
//   "end"                                                              → {"peak_mb": VmHWM, "extra_mb": beyond the
//                                                                      inputs}
// Turns alternate (ours, peer, peer, ours, …). Values and gradients must agree before anything is timed.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>

#include "core/io/files.h"
#include "core/io/safetensors.h"
#include "kernels/base/error.h"
#include "launch/process/machine.h"
#include "launch/process/subprocess.h"
#include "launch/terminal.h"
#include "tests/bench/bench.h"
#include "tests/bench/cases.h"

namespace pal::bench {
namespace {

using nlohmann::json;

// One process of a comparison; ends with this object.
struct Side {
  std::unique_ptr<launch::BenchFolder> folder;  // of its own inputs, if they differ from those of the case
  std::unique_ptr<launch::Subprocess> child;
  std::vector<double> ms = {};  // the median of each turn
  json memory = {};

  json ask(const std::string& line) {
    child->write_line(line);
    return json::parse(child->read_line());
  }
  void turn(int at_least_ms) { ms.push_back(launch::median(ask(fmt::format("go {}", at_least_ms))["ms"])); }
  void end() {
    memory = ask("end");
    child->wait();
  }
};

const KernelCase& case_of(const std::vector<KernelCase>& all, const std::string& name) {
  return *std::find_if(all.begin(), all.end(), [&](const KernelCase& c) { return c.name == name; });
}

std::unique_ptr<launch::BenchFolder> write_inputs(const KernelCase& c, const KernelBenchOptions& o) {
  auto folder = std::make_unique<launch::BenchFolder>();
  if (c.name == "augment") {
    PAL_CHECK(launch::Subprocess({o.peer.python, o.peer.script, "--packages", o.peer.packages, "--images",
                                  folder->path + "/images.safetensors"})
                      .wait() == 0,
              "the peer's images cannot be decoded from", o.peer.packages, "its output is above");
  }
  io::write_safetensors(folder->path + "/input.safetensors", c.inputs(folder->path), {});
  return folder;
}

Side start_ours(const KernelCase& c, const std::string& folder, const KernelBenchOptions& o,
                const std::string& program) {
  std::vector<std::string> command = {program,     o.suite == BenchSuite::graph ? "graph" : "kernels",
                                      "--case",    c.name,
                                      "--side-in", folder,
                                      "--threads", std::to_string(o.threads)};
  if (o.sizes == BenchSizes::small) command.push_back("--quick");
  Side side{nullptr, std::make_unique<launch::Subprocess>(command)};
  side.child->read_line();  // ready
  return side;
}

Side start_peer(const KernelCase& c, const KernelPeer& peer, const std::string& folder, const KernelBenchOptions& o) {
  Side side{nullptr, std::make_unique<launch::Subprocess>(std::vector<std::string>{
                         o.peer.python, o.peer.script, "--packages", o.peer.packages, "--input",
                         folder + "/input.safetensors", "--case", c.name, "--params", c.params.dump(), "--peer",
                         peer.name, "--threads", std::to_string(o.threads)})};
  side.child->read_line();
  return side;
}

std::vector<float> read_floats(const std::string& path) {
  const std::string bytes = io::read_whole_file(path);
  std::vector<float> x(bytes.size() / sizeof(float));
  std::memcpy(x.data(), bytes.data(), x.size() * sizeof(float));
  return x;
}

// Relative to the norm; for ids the share that differs. Infinite if not finite or of another size.
double difference(const std::string& name, const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double apart = 0, norm = 0, differ = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    apart += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    norm += double(b[i]) * b[i];
    differ += a[i] != b[i];
  }
  if (name == "ids") return differ / static_cast<double>(a.size());
  const double result = std::sqrt(apart / norm);
  return std::isfinite(result) ? result : INFINITY;
}

// The largest difference of value and outputs. Ids may differ where scores tie up to rounding. Both sides must be newly
// started, because the second step of an optimizer differs from its first.
double compare(Side ours, Side& peer, const std::string& folder) {
  const json a = ours.ask("check " + folder + "/ours"), b = peer.ask("check " + folder + "/peer");
  const double va = a["value"], vb = b["value"];
  double worst = va == vb ? 0 : std::abs(va - vb) / std::abs(vb);
  for (const std::string name : a["outputs"]) {
    const double d = difference(name, read_floats(folder + "/ours." + name), read_floats(folder + "/peer." + name));
    worst = std::max(worst, name == "ids" && d < 0.01 ? 0 : d);
  }
  ours.end();
  return std::isfinite(worst) ? worst : INFINITY;
}

// Peak figures of the machine with these threads: copies (read and write) in GB/s, matrix products in GF/s.
struct Machine {
  double copy_gb_s = 0, sgemm_gf_s = 0;
};

double best_seconds(const std::function<void()>& f) {
  double best = INFINITY;
  for (int k = 0; k < 5; ++k) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

Machine measure_machine(const KernelBenchOptions& o) {
  at::set_num_threads(o.threads);
  const int64_t count = o.sizes == BenchSizes::full ? int64_t{1} << 26 : int64_t{1} << 18,
                side = o.sizes == BenchSizes::full ? 2048 : 128;
  const at::Tensor from = at::empty({count}).fill_(1), to = at::empty({count}), a = at::empty({side, side}).fill_(0.5);
  at::Tensor c = at::empty({side, side});
  const double copy = best_seconds([&] { to.copy_(from); });
  const double product = best_seconds([&] { at::mm_out(c, a, a); });
  return {2e-9 * sizeof(float) * static_cast<double>(count) / copy,
          2e-9 * std::pow(static_cast<double>(side), 3) / product};
}

// Runs all sides of one case in turns. Appends to `results`.
void run_case(json& results, const KernelCase& c, const std::vector<KernelCase>& all, const KernelBenchOptions& o,
              const std::string& program) {
  launch::install_peer(o.peer, {"--case", c.name});
  const auto folder = write_inputs(c, o);
  Side ours = start_ours(c, folder->path, o, program);
  std::vector<Side> peers;
  std::vector<double> differences;
  for (const KernelPeer& peer : c.peers) {
    if (!peer.own_case.empty()) {
      const KernelCase& own = case_of(all, peer.own_case);
      auto inputs = write_inputs(own, o);
      peers.push_back(start_ours(own, inputs->path, o, program));
      peers.back().folder = std::move(inputs);
      differences.push_back(0);
      continue;
    }
    peers.push_back(start_peer(c, peer, folder->path, o));
    differences.push_back(compare(start_ours(c, folder->path, o, program), peers.back(), folder->path));
    PAL_CHECK_CODE(Exit::check_failed, differences.back() <= peer.tolerance,
                   c.name + ": ours and " + peer.name + " do not compute the same; difference",
                   fmt::format("{:.1e}", differences.back()), "nothing of this case was timed");
  }
  ours.turn(0);  // warm-up
  for (Side& peer : peers) peer.turn(0);
  for (int t = 0; t < o.turns; ++t) {
    ours.turn(o.turn_ms);
    for (Side& peer : peers) peer.turn(o.turn_ms);
  }
  ours.end();
  ours.ms.erase(ours.ms.begin());
  for (size_t p = 0; p < peers.size(); ++p) {
    Side& peer = peers[p];
    peer.end();
    peer.ms.erase(peer.ms.begin());
    std::vector<double> ratios;
    for (int t = 0; t < o.turns; ++t) ratios.push_back(peer.ms[t] / ours.ms[t]);
    const double ms = launch::median(ours.ms);
    results.push_back({{"name", c.name},
                       {"params", c.params},
                       {"ours_ms", ms},
                       {"peer", c.peers[p].name},
                       {"peer_ms", launch::median(peer.ms)},
                       {"ratio", launch::median(ratios)},
                       {"noise", std::max(launch::noise(ours.ms), launch::noise(peer.ms))},
                       {"ours_noise", launch::noise(ours.ms)},
                       {"difference", differences[p]},
                       {"ours_gb_s", c.bytes / ms * 1e-6},
                       {"ours_gf_s", c.flops / ms * 1e-6},
                       {"ours_peak_mb", ours.memory["peak_mb"]},
                       {"peer_peak_mb", peer.memory["peak_mb"]},
                       {"ours_extra_mb", ours.memory["extra_mb"]},
                       {"peer_extra_mb", peer.memory["extra_mb"]},
                       {"ours_samples_ms", ours.ms},
                       {"peer_samples_ms", peer.ms}});
  }
}

std::string table(const json& results, size_t from) {
  std::vector<std::vector<std::string>> rows = {
      {"case", "peer", "ours ms", "peer ms", "ratio", "noise", "GB/s", "GF/s", "ours +MB", "peer +MB", "differ"}};
  for (size_t k = from; k < results.size(); ++k) {
    const json& r = results[k];
    const auto number = [&](const char* name, int digits) {
      return fmt::format("{:.{}f}", r[name].get<double>(), digits);
    };
    rows.push_back({r["name"], r["peer"], number("ours_ms", 2), number("peer_ms", 2), number("ratio", 2),
                    number("noise", 3), number("ours_gb_s", 1), number("ours_gf_s", 1), number("ours_extra_mb", 0),
                    number("peer_extra_mb", 0), fmt::format("{:.0e}", r["difference"].get<double>())});
  }
  return launch::format_table(rows);
}

}  // namespace

int bench_kernels(const KernelBenchOptions& options, const std::string& program) {
  launch::check_peer_files(options.peer);
  const std::vector<KernelCase> all = bench_cases(options.suite, options.sizes);
  const Machine machine = measure_machine(options);
  fmt::print("{} threads a side; this machine copies {:.1f} GB/s and multiplies {:.1f} GF/s (torch's sgemm)\n",
             options.threads, machine.copy_gb_s, machine.sgemm_gf_s);
  json results = json::array();
  Exit worst = Exit::ok;
  for (const KernelCase& c : all) {
    if (c.peers.empty()) continue;
    if (!options.cases.empty() && std::find(options.cases.begin(), options.cases.end(), c.name) == options.cases.end())
      continue;
    const size_t from = results.size();
    try {
      run_case(results, c, all, options, program);
    } catch (const Error& e) {  // the other cases still run
      if (e.code() != Exit::check_failed) throw;
      fmt::print(stderr, "error: {}\n", e.what());
      worst = Exit::check_failed;
      continue;
    }
    fmt::print("\n{}\n{}", c.params.dump(), table(results, from));
    std::fflush(stdout);
  }
  fmt::print(
      "\nratio = peer / ours, larger is better; +MB: memory above the inputs; noise: of a side against itself\n");
  if (!options.json.empty()) {
    const json out = {{"machine",
                       {{"cpu", launch::proc_field("/proc/cpuinfo", "model name")},
                        {"threads", options.threads},
                        {"copy_gb_s", machine.copy_gb_s},
                        {"sgemm_gf_s", machine.sgemm_gf_s}}},
                      {"results", results}};
    io::write_file_atomically(options.json, out.dump(2) + "\n");
  }
  return static_cast<int>(worst);
}

}  // namespace pal::bench
