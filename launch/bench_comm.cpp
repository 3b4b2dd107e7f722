#include "launch/bench_comm.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/data/sampler.h"
#include "core/io/files.h"
#include "core/setup.h"
#include "dist/cluster.h"
#include "dist/nccl_version.h"
#include "kernels/base/error.h"
#include "launch/bench_common.h"
#include "launch/child.h"
#include "launch/machine.h"
#include "launch/mpirun.h"
#include "launch/nccl_links.h"
#include "launch/table.h"

namespace pal {
namespace {

using nlohmann::json;

constexpr Collective kCollectives[] = {Collective::all_reduce, Collective::all_gather, Collective::broadcast, Collective::all_to_all};
constexpr int64_t kLeastBytes = 64;

std::vector<int64_t> sizes(int64_t most) {
  std::vector<int64_t> out;
  for (int64_t n = kLeastBytes; n <= most; n *= 4) out.push_back(n);
  return out;
}

// The collective as `bytes` counts it in collective_seconds.
std::function<void()> operation(Collective c, int64_t bytes, Comm& comm) {
  const int64_t numbers = bytes / 4, share = std::max<int64_t>(1, numbers / comm.size());
  const at::Tensor all = at::zeros({numbers}, at::kFloat), own = at::zeros({share}, at::kFloat);
  switch (c) {
    case Collective::all_reduce: return [all, &comm] { comm.all_reduce(all); };
    case Collective::all_gather: return [own, &comm] { comm.all_gather(own); };
    case Collective::broadcast: return [all, &comm] { comm.broadcast(all, 0); };
    case Collective::all_to_all: {
      const std::vector<int64_t> counts(comm.size(), share);
      const at::Tensor sent = at::zeros({share * comm.size()}, at::kFloat);
      return [sent, counts, &comm] { comm.all_to_all_v(sent, counts, counts); };
    }
  }
  return [] {};
}

double seconds_since(std::chrono::steady_clock::time_point start) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }

// Collective. Of the slowest rank.
double slowest(double seconds, Comm& comm) {
  const at::Tensor t = at::full({1}, seconds, at::kDouble);
  comm.all_reduce(t, ReduceOp::max);
  return t.item<double>();
}

// Collective. The best turn of enough calls: what the links can do when nobody else is on the machine.
double measure(const std::function<void()>& run, int turns, Comm& comm) {
  const auto turn = [&](int calls) {
    comm.barrier();
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < calls; ++k) run();
    return slowest(seconds_since(start), comm) / calls;
  };
  run();
  const int calls = std::clamp(static_cast<int>(0.004 / turn(3)), 1, 2000);   // the same on every rank: made of reduced numbers
  double best = turn(calls);
  for (int t = 1; t < turns; ++t) best = std::min(best, turn(calls));
  return best;
}

double relative_error(double model, double measured) { return std::abs(model / measured - 1); }

// What one number of ranks gave for one collective.
struct Curve {
  Collective collective;
  int ranks;
  std::vector<CommSample> samples;
  CommLink link;
  double predicted(const CommSample& s) const { return collective_seconds(collective, {ranks, link, link, 0}, ranks, s.bytes, Route::flat_ring); }
  static bool fitted(size_t k) { return k % 2 == 0; }
  std::vector<double> held_out_errors() const {
    std::vector<double> out;
    for (size_t k = 0; k < samples.size(); ++k) {
      if (!fitted(k)) out.push_back(relative_error(predicted(samples[k]), samples[k].seconds));
    }
    return out;
  }
};

std::vector<Curve> run_ranks(int ranks, const CommBenchOptions& options, const std::string& program) {
  std::vector<std::string> command = {PAL_MPIRUN};
  for (const std::string& option : mpirun_options(host_facts(), ranks, 1)) command.push_back(option);
  command.insert(command.end(), {"-np", std::to_string(ranks), program, "bench", "comm", "--as-rank", "--turns", std::to_string(options.turns), "--most-bytes",
                                 std::to_string(options.most_bytes)});
  Child child(command);
  const json said = json::parse(child.read_line());
  PAL_CHECK(child.wait() == 0, "the ranks that measure ended with an error", ranks, "its words stand above");
  std::vector<Curve> curves;
  for (const Collective c : kCollectives) {
    Curve curve{c, ranks, {}, {}};
    std::vector<CommSample> used;
    for (const json& point : said.at(collective_name(c))) {
      curve.samples.push_back({c, ranks, point.at("bytes"), point.at("seconds")});
      if (Curve::fitted(curve.samples.size() - 1)) used.push_back(curve.samples.back());
    }
    curve.link = fit_link(used);
    curves.push_back(std::move(curve));
  }
  return curves;
}

void print_curves(const std::vector<Curve>& curves) {
  std::vector<std::vector<std::string>> rows = {{fmt::format("us on {} ranks: bytes", curves[0].ranks)}};
  for (const Curve& c : curves) rows[0].insert(rows[0].end(), {collective_name(c.collective), "model", "error"});
  for (size_t k = 0; k < curves[0].samples.size(); ++k) {
    std::vector<std::string> row = {fmt::format("{:.0f}", curves[0].samples[k].bytes)};
    for (const Curve& c : curves) {
      const double model = c.predicted(c.samples[k]), measured = c.samples[k].seconds;
      row.insert(row.end(), {fmt::format("{:.1f}", 1e6 * measured), fmt::format("{:.1f}", 1e6 * model), fmt::format("{:+.0f} %{}", 100 * (model / measured - 1), Curve::fitted(k) ? "" : " p")});
    }
    rows.push_back(row);
  }
  fmt::print("{}", format_table(rows));
}

json curve_json(const Curve& c) {
  json points = json::array();
  for (size_t k = 0; k < c.samples.size(); ++k) {
    const CommSample& s = c.samples[k];
    points.push_back({{"bytes", s.bytes}, {"measured_us", 1e6 * s.seconds}, {"model_us", 1e6 * c.predicted(s)}, {"role", Curve::fitted(k) ? "fitted" : "predicted"}});
  }
  const std::vector<double> errors = c.held_out_errors();
  return {{"name", collective_name(c.collective)}, {"params", {{"ranks", c.ranks}}}, {"alpha_us", 1e6 * c.link.alpha}, {"beta_gb_per_s", c.link.beta / 1e9},
          {"median_error", median(errors)}, {"worst_error", *std::max_element(errors.begin(), errors.end())}, {"points", points}};
}

void write_cluster(const std::string& file, const std::vector<CommSample>& samples, int ranks) {
  Cluster cluster = read_cluster("local");
  cluster.name = "measured";
  cluster.gpu = fmt::format("{} CPU ranks, {}", ranks, proc_field("/proc/cpuinfo", "model name"));
  cluster.fabric.per_node = ranks;
  cluster.fabric.node = fit_link(samples);
  write_file_atomically(file, "# Links measured by pal bench comm; the rest is the preset local.\n" + cluster_text(cluster));
}

// NCCL between this machine's GPUs; one rank for each of them.
int bench_links(const CommBenchOptions& options, const std::string& program) {
  const CudaState cuda = cuda_state();
  PAL_CHECK(cuda.reason.empty(), "no collectives between GPUs can be measured here", cuda.reason, "run it on a machine with GPUs (pal doctor looks at this one)");
  return measure_links(cuda, program, {options.most_bytes, options.turns, options.json});
}

}  // namespace

void bench_comm_rank(const CommBenchOptions& options, World& world) {
  json out;
  for (const Collective c : kCollectives) {
    for (const int64_t bytes : sizes(options.most_bytes)) {
      const double seconds = measure(operation(c, bytes, world.now()), options.turns, world.now());
      out[collective_name(c)].push_back({{"bytes", bytes}, {"seconds", seconds}});
    }
  }
  if (world.rank() == 0) fmt::print("{}\n", out.dump());
  std::fflush(stdout);
}

int bench_comm(const CommBenchOptions& options, const std::string& program) {
  if (options.device == "cuda") return bench_links(options, program);
  PAL_CHECK(sizes(options.most_bytes).size() >= 4, "bytes of the largest message", options.most_bytes, "give at least 4096: a line is fitted to several sizes");
  std::vector<std::vector<std::string>> rows = {{"fit", "ranks", "alpha us", "beta GB/s", "median error", "worst error"}};
  json results = json::array();
  std::vector<CommSample> shared;
  int shared_ranks = 0;
  for (const int ranks : options.ranks) {
    const std::vector<Curve> curves = run_ranks(ranks, options, program);
    print_curves(curves);
    for (const Curve& c : curves) {
      results.push_back(curve_json(c));
      rows.push_back({collective_name(c.collective), std::to_string(ranks), fmt::format("{:.2f}", 1e6 * c.link.alpha), fmt::format("{:.2f}", c.link.beta / 1e9),
                      fmt::format("{:.0f} %", 100 * results.back()["median_error"].get<double>()), fmt::format("{:.0f} %", 100 * results.back()["worst_error"].get<double>())});
      if (shared_ranks != 0 && shared_ranks != ranks) continue;
      shared_ranks = ranks;
      if (c.collective == Collective::all_reduce || c.collective == Collective::all_gather) shared.insert(shared.end(), c.samples.begin(), c.samples.end());
    }
    std::fflush(stdout);
  }
  fmt::print("{}p: predicted, from a line fitted to the other sizes; errors are of these\n", format_table(rows));
  if (!options.cluster.empty()) write_cluster(options.cluster, shared, shared_ranks);
  if (!options.json.empty()) {
    write_file_atomically(options.json, json{{"machine", {{"cpu", proc_field("/proc/cpuinfo", "model name")}, {"cores", usable_cores()}}}, {"results", results}}.dump(2) + "\n");
  }
  return static_cast<int>(Exit::ok);
}

}  // namespace pal
