#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/io/cores.h"
#include "core/io/files.h"
#include "core/setup/setup.h"
#include "dist/comm/device.h"
#include "dist/comm/world.h"
#include "dist/scale/cluster.h"
#include "dist/scale/collective_cost.h"
#include "kernels/base/clock.h"
#include "kernels/base/error.h"
#include "launch/cmd/internal.h"
#include "launch/doctor/nccl_links.h"
#include "launch/process/interleaved.h"
#include "launch/process/machine.h"
#include "launch/process/mpirun.h"
#include "launch/process/subprocess.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

using nlohmann::json;

constexpr dist::Collective kCollectives[] = {dist::Collective::all_reduce, dist::Collective::all_gather,
                                             dist::Collective::broadcast, dist::Collective::all_to_all};
constexpr int64_t kLeastBytes = 64;

// Powers of two, and the middle between two of them.
std::vector<int64_t> sizes(int64_t most) {
  std::vector<int64_t> out;
  for (int64_t n = kLeastBytes; n <= most; n *= 2) out.insert(out.end(), {n, n + n / 2});
  while (out.back() > most) out.pop_back();
  return out;
}
// What the k-th size is for.
enum class Role { fitted, predicted };
Role role(size_t k) { return k % 2 == 0 ? Role::fitted : Role::predicted; }

// The collective as `bytes` counts it in collective_seconds.
std::function<void()> operation(dist::Collective c, int64_t bytes, comm::Comm& comm) {
  const int64_t numbers = bytes / 4, share = std::max<int64_t>(1, numbers / comm.size());
  const at::Tensor all = at::zeros({numbers}, at::kFloat), own = at::zeros({share}, at::kFloat);
  switch (c) {
    case dist::Collective::all_reduce:
      return [all, &comm] { comm.all_reduce(all); };
    case dist::Collective::all_gather:
      return [own, &comm] { comm.all_gather(own); };
    case dist::Collective::broadcast:
      return [all, &comm] { comm.broadcast(all, 0); };
    case dist::Collective::all_to_all: {
      const std::vector<int64_t> counts(comm.size(), share);
      const at::Tensor sent = at::zeros({share * comm.size()}, at::kFloat);
      return [sent, counts, &comm] { comm.all_to_all_v(sent, counts, counts); };
    }
  }
  return [] {};
}

// Collective. Of the slowest rank.
double slowest(double seconds, comm::Comm& comm) {
  const at::Tensor t = at::full({1}, seconds, at::kDouble);
  comm.all_reduce(t, comm::ReduceOp::max);
  return t.item<double>();
}

// Collective. Seconds per call of each operation: the fastest of its turns, which is what the links can do on an idle
// machine. The operations alternate, so that a disturbance does not fall on all turns of one.
std::vector<double> measure(const std::vector<std::function<void()>>& operations, int turns, comm::Comm& comm) {
  const auto turn = [&](const std::function<void()>& run, int calls) {
    comm.barrier();
    const Clock::time_point start = Clock::now();
    for (int k = 0; k < calls; ++k) run();
    return slowest(seconds_since(start), comm) / calls;
  };
  std::vector<int> calls;
  for (const auto& run : operations) {
    run();
    calls.push_back(std::clamp(static_cast<int>(0.004 / turn(run, 3)), 1,
                               2000));  // the same on every rank, because the numbers are all-reduced
  }
  std::vector<double> best(operations.size(), std::numeric_limits<double>::infinity());
  for (int t = 0; t < turns; ++t) {
    for (size_t k = 0; k < operations.size(); ++k) best[k] = std::min(best[k], turn(operations[k], calls[k]));
  }
  return best;
}

using Samples = std::vector<dist::CommSample>;

// The measurements of one collective on one number of ranks, by size.
struct Curve {
  dist::Collective collective;
  int ranks;
  Samples samples = {};
  dist::CommLink link = {};
  Samples part(Role wanted) const {
    Samples out;
    for (size_t k = 0; k < samples.size(); ++k) {
      if (role(k) == wanted) out.push_back(samples[k]);
    }
    return out;
  }
};

const Curve& curve_of(const std::vector<Curve>& curves, dist::Collective c) {
  return *std::find_if(curves.begin(), curves.end(), [&](const Curve& curve) { return curve.collective == c; });
}

double relative_error(const dist::CommSample& s, const dist::CommLink& link) {
  return dist::ring_seconds(s, link) / s.seconds - 1;
}

struct Errors {
  double median = 0, worst = 0;
};
Errors errors_of(const dist::CommLink& link, const Samples& samples) {
  std::vector<double> errors;
  for (const dist::CommSample& s : samples) errors.push_back(std::abs(relative_error(s, link)));
  return {median(errors), *std::max_element(errors.begin(), errors.end())};
}

// A fit, and its errors at the sizes that were not fitted.
struct TestedFit {
  dist::CommLink link;
  Errors errors, one_line;
};
TestedFit test_fit(const Samples& seen, const Samples& held_out) {
  TestedFit out{dist::fit_link(seen), {}, errors_of(dist::fit_link(seen, 1), held_out)};
  out.errors = errors_of(out.link, held_out);
  return out;
}

std::string pieces_text(const dist::CommLink& link) {
  std::string out = fmt::format("{:.2f} us, {:.3g} GB/s", 1e6 * link.alpha, link.beta / 1e9);
  for (const dist::CommPiece& p : link.larger)
    out += fmt::format("; from {:.0f} B {:.2f} us, {:.3g} GB/s", p.from, 1e6 * p.alpha, p.beta / 1e9);
  return out;
}
std::string errors_text(const Errors& e) { return fmt::format("{:.0f} / {:.0f} %", 100 * e.median, 100 * e.worst); }

std::vector<Curve> run_ranks(int ranks, const CommBenchOptions& options, const std::string& program) {
  std::vector<std::string> command = {PAL_MPIRUN};
  for (const std::string& option : mpirun_options(host_facts(), ranks, 1)) command.push_back(option);
  command.insert(command.end(), {"-np", std::to_string(ranks), program, "bench", "comm", "--as-rank", "--turns",
                                 std::to_string(options.turns), "--most-bytes", std::to_string(options.most_bytes)});
  Subprocess child(command);
  const json answer = json::parse(child.read_line());
  PAL_CHECK(child.wait() == 0, "a job of {} ranks failed", ranks, "its output is above");
  std::vector<Curve> curves;
  for (const dist::Collective c : kCollectives) {
    Curve curve{c, ranks};
    for (const json& point : answer.at(dist::collective_name(c)))
      curve.samples.push_back({c, ranks, point.at("bytes"), point.at("seconds")});
    curves.push_back(std::move(curve));
  }
  return curves;
}

void print_curves(const std::vector<Curve>& curves) {
  std::vector<std::vector<std::string>> rows = {{fmt::format("us on {} ranks: bytes", curves[0].ranks)}};
  for (const Curve& c : curves) rows[0].insert(rows[0].end(), {dist::collective_name(c.collective), "model", "error"});
  for (size_t k = 0; k < curves[0].samples.size(); ++k) {
    std::vector<std::string> row = {fmt::format("{:.0f}", curves[0].samples[k].bytes)};
    for (const Curve& c : curves) {
      const dist::CommSample& s = c.samples[k];
      row.insert(row.end(),
                 {fmt::format("{:.1f}", 1e6 * s.seconds), fmt::format("{:.1f}", 1e6 * dist::ring_seconds(s, c.link)),
                  fmt::format("{:+.0f} %{}", 100 * relative_error(s, c.link), role(k) == Role::fitted ? "" : " p")});
    }
    rows.push_back(row);
  }
  fmt::print("{}", format_table(rows));
}

json curve_json(const Curve& c, const TestedFit& tested) {
  json points = json::array(), larger = json::array();
  for (size_t k = 0; k < c.samples.size(); ++k) {
    const dist::CommSample& s = c.samples[k];
    points.push_back({{"bytes", s.bytes},
                      {"measured_us", 1e6 * s.seconds},
                      {"model_us", 1e6 * dist::ring_seconds(s, c.link)},
                      {"role", role(k) == Role::fitted ? "fitted" : "predicted"}});
  }
  for (const dist::CommPiece& p : c.link.larger)
    larger.push_back({{"from_bytes", p.from}, {"alpha_us", 1e6 * p.alpha}, {"beta_gb_per_s", p.beta / 1e9}});
  return {{"name", dist::collective_name(c.collective)},
          {"params", {{"ranks", c.ranks}}},
          {"alpha_us", 1e6 * c.link.alpha},
          {"beta_gb_per_s", c.link.beta / 1e9},
          {"larger", larger},
          {"median_error", tested.errors.median},
          {"worst_error", tested.errors.worst},
          {"one_line", {{"median_error", tested.one_line.median}, {"worst_error", tested.one_line.worst}}},
          {"points", points}};
}

// From all sizes.
void write_cluster(const std::string& file, const std::vector<Curve>& curves) {
  const int ranks = curves[0].ranks;
  dist::Cluster cluster = dist::read_cluster("local");
  cluster.name = "measured";
  cluster.gpu = fmt::format("{} CPU ranks, {}", ranks, proc_field("/proc/cpuinfo", "model name"));
  cluster.fabric.per_node = ranks;
  cluster.fabric.node = dist::fit_link(curve_of(curves, dist::Collective::all_reduce).samples);
  cluster.fabric.gather = dist::fit_link(curve_of(curves, dist::Collective::all_gather).samples);
  io::write_file_atomically(
      file, "# Links measured by pal bench comm; the rest is the preset local.\n" + dist::cluster_text(cluster));
}

// NCCL between this machine's GPUs; one rank for each of them.
int bench_links(const CommBenchOptions& options, const std::string& program) {
  const dist::CudaState cuda = dist::cuda_state();
  PAL_CHECK(cuda.reason.empty(), "collectives between GPUs cannot be measured on this machine", cuda.reason,
            "run it on a machine with GPUs (pal doctor checks this one)");
  return measure_links(cuda, program, {options.most_bytes, options.turns, options.json});
}

}  // namespace

void bench_comm_rank(const CommBenchOptions& options, dist::World& world) {
  json out;
  for (const dist::Collective c : kCollectives) {
    const std::vector<int64_t> all = sizes(options.most_bytes);
    std::vector<std::function<void()>> operations;
    for (const int64_t bytes : all) operations.push_back(operation(c, bytes, world.compute()));
    const std::vector<double> seconds = measure(operations, options.turns, world.compute());
    for (size_t k = 0; k < all.size(); ++k)
      out[dist::collective_name(c)].push_back({{"bytes", all[k]}, {"seconds", seconds[k]}});
  }
  if (world.rank() == 0) fmt::print("{}\n", out.dump());
  std::fflush(stdout);
}

int bench_comm(const CommBenchOptions& options, const std::string& program) {
  if (options.device == "cuda") return bench_links(options, program);
  PAL_CHECK(options.most_bytes >= 4096, "--most-bytes is {}", options.most_bytes,
            "give at least 4096: a link is fitted to several sizes");
  std::vector<std::vector<std::string>> rows = {{"link", "ranks", "median / worst error", "of one line", "a message"}};
  json results = json::array();
  for (const int ranks : options.ranks) {
    std::vector<Curve> curves = run_ranks(ranks, options, program);
    for (Curve& c : curves) {
      const TestedFit tested = test_fit(c.part(Role::fitted), c.part(Role::predicted));
      c.link = tested.link;
      rows.push_back({dist::collective_name(c.collective), std::to_string(ranks), errors_text(tested.errors),
                      errors_text(tested.one_line), pieces_text(tested.link)});
      results.push_back(curve_json(c, tested));
    }
    print_curves(curves);
    std::fflush(stdout);
    if (!options.cluster.empty() && ranks == options.ranks[0]) write_cluster(options.cluster, curves);
  }
  fmt::print("{}p: predicted by a link fitted to the other sizes; the errors refer to these\n", format_table(rows));
  if (!options.json.empty()) {
    io::write_file_atomically(
        options.json,
        json{{"machine", {{"cpu", proc_field("/proc/cpuinfo", "model name")}, {"cores", io::usable_cores()}}},
             {"results", results}}
                .dump(2) +
            "\n");
  }
  return static_cast<int>(Exit::ok);
}

}  // namespace pal::launch
