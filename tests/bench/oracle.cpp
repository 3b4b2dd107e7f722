// oracle: how long a round of questions takes at ImageNet's size, and k-means and uncertainty sampling against peers.
//
// Rounds: embeddings are synthetic unit rows around a direction per class, a function of (sample, class), sharded over
//   MPI ranks as in training. The time covers the draw of the pool, the class model and the choice, up to the list of
//   questions on every rank; embedding the pool is not included. Every number of ranks must give the same questions.
// k-means: faiss (spherical) gets the same rows, clusters and iterations; our assignment of rows evaluates both sides.
// Uncertainty: ours against margin sampling of modAL with scikit-learn's LDA, fit and query, on a pool that modAL can
// hold.
#include "core/oracle/oracle.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/comm/comm.h"
#include "core/data/feature_set.h"
#include "core/io/feature_file.h"
#include "core/io/files.h"
#include "core/oracle/samplers/kmeans.h"
#include "core/oracle/samplers/products.h"
#include "core/oracle/samplers/samplers.h"
#include "kernels/base/error.h"
#include "launch/process/machine.h"
#include "launch/process/mpirun.h"
#include "launch/process/subprocess.h"
#include "launch/terminal.h"
#include "tests/bench/bench.h"
#include "tests/core/spec_of.h"

namespace pal::bench {
namespace {

using nlohmann::json;
using BenchClock = std::chrono::steady_clock;

double ms_since(BenchClock::time_point start) {
  return std::chrono::duration<double, std::milli>(BenchClock::now() - start).count();
}

std::vector<int64_t> first_samples(int64_t n) {
  std::vector<int64_t> ids(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) ids[i] = i;
  return ids;
}

// Mean of 1 − cosine to the nearest center, evaluated in the same way for both sides.
double inertia(const at::Tensor& rows, const at::Tensor& centers) {
  double sum = 0;
  for (int64_t begin = 0; begin < rows.size(0); begin += 4096) {
    const int64_t n = std::min<int64_t>(4096, rows.size(0) - begin);
    const at::Tensor p = oracle::times_transposed(rows.narrow(0, begin, n), centers);
    for (int64_t i = 0; i < n; ++i)
      sum += 1 - *std::max_element(p.const_data_ptr<float>() + i * p.size(1),
                                   p.const_data_ptr<float>() + (i + 1) * p.size(1));
  }
  return sum / static_cast<double>(rows.size(0));
}

struct Report {
  json results = json::array();
  std::vector<std::vector<std::string>> rows;
};

// Every sampler that asks.
std::vector<std::string> asking_samplers() {
  std::vector<std::string> names = oracle::sampler_names();
  std::erase(names, "ssl");
  return names;
}
const std::vector<std::string> kSamplers = asking_samplers();

// The results of one number of ranks, by sampler.
std::vector<json> run_rounds(const OracleBenchOptions& o, int ranks, const std::string& program) {
  const int threads = std::max(1, o.threads / ranks);
  std::vector<std::string> command = {PAL_MPIRUN};
  for (const std::string& option : launch::mpirun_options(launch::host_facts(), ranks, threads))
    command.push_back(option);
  command.insert(command.end(), {"-np", std::to_string(ranks), program, "oracle", "--as-rank"});
  for (const auto& [option, value] : {std::pair<std::string, int64_t>{"--turns", o.turns},
                                      {"--threads", threads},
                                      {"--samples", o.samples},
                                      {"--dims", o.dims},
                                      {"--classes", o.classes},
                                      {"--pool", o.pool},
                                      {"--questions", o.questions}}) {
    command.insert(command.end(), {option, std::to_string(value)});
  }
  launch::Subprocess child(command);
  launch::Progress bar(
      fmt::format("rounds on {} rank{} x {} thread{}", ranks, ranks == 1 ? "" : "s", threads, threads == 1 ? "" : "s"),
      static_cast<int64_t>(kSamplers.size()));
  std::vector<json> said;
  while (said.size() < kSamplers.size()) {
    said.push_back(json::parse(child.read_line()));
    bar.update(static_cast<int64_t>(said.size()), said.back().at("name"));
  }
  PAL_CHECK(child.wait() == 0, "the ranks that choose ended with an error", ranks, "its output is above");
  return said;
}

// One column per number of ranks. The questions must be equal.
void bench_samplers(const OracleBenchOptions& o, const std::string& program, Report& report) {
  std::vector<std::vector<json>> said;
  report.rows = {{"sampler", "questions"}};
  for (int ranks : o.ranks) {
    said.push_back(run_rounds(o, ranks, program));
    report.rows[0].push_back(fmt::format("ms, {} rank{}", ranks, ranks == 1 ? "" : "s"));
    report.rows[0].emplace_back("noise");
  }
  std::vector<double> peaks(said.size(), 0);
  for (size_t k = 0; k < kSamplers.size(); ++k) {
    const json& first = said[0][k];
    report.rows.push_back({kSamplers[k], std::to_string(first.at("questions").get<int64_t>())});
    for (size_t c = 0; c < said.size(); ++c) {
      const json& one = said[c][k];
      PAL_CHECK(one.at("asked") == first.at("asked"), "questions of " + kSamplers[k] + " depend on the number of ranks",
                o.ranks[c], "this is our bug: report it");
      const std::vector<double> ms = one.at("ms");
      report.rows.back().insert(report.rows.back().end(),
                                {fmt::format("{:.0f}", launch::median(ms)), fmt::format("{:.2f}", launch::noise(ms))});
      report.results.push_back({{"name", "round " + kSamplers[k]},
                                {"params",
                                 {{"N", o.samples},
                                  {"D", o.dims},
                                  {"C", o.classes},
                                  {"pool", o.pool},
                                  {"questions", o.questions},
                                  {"ranks", o.ranks[c]}}},
                                {"ours_ms", launch::median(ms)},
                                {"noise", launch::noise(ms)},
                                {"ours_peak_mb", one.at("peak_mb")},
                                {"ours_samples_ms", ms}});
      peaks[c] = std::max(peaks[c], one.at("peak_mb").get<double>());
    }
  }
  fmt::print(
      "a round of {} questions at N = {}, D = {}, C = {}, a drawn pool of {} whose embeddings lie on the ranks; {} "
      "threads in all\n{}",
      o.questions, o.samples, o.dims, o.classes, o.pool, o.threads, launch::format_table(report.rows));
  for (size_t c = 0; c < said.size(); ++c)
    fmt::print("peak memory of a rank, of {}: {:.0f} MB, its embeddings included\n", o.ranks[c], peaks[c]);
  if (said.size() > 1) fmt::print("the questions are the same for each number of ranks\n");
}

// Alternates our turns and the peer's; `ours` returns ms, `judge` evaluates the result of a turn.
template <class F>
void bench_peer(const OracleBenchOptions& o, const std::string& name, const std::vector<std::string>& command,
                const F& ours, Report& report, const std::string& agree_note, const std::function<void()>& judge,
                const std::function<std::string()>& note) {
  launch::Subprocess peer(command);
  const std::string who = json::parse(peer.read_line())["ready"];
  std::vector<double> mine, theirs, ratios;
  for (int t = 0; t < o.turns; ++t) {
    mine.push_back(ours());
    peer.write_line("go");
    theirs.push_back(json::parse(peer.read_line())["ms"]);
    judge();
    ratios.push_back(theirs.back() / mine.back());
  }
  peer.write_line("end");
  const json last = json::parse(peer.read_line());
  peer.wait();
  report.rows.push_back({name, who, fmt::format("{:.0f}", launch::median(mine)),
                         fmt::format("{:.0f}", launch::median(theirs)), fmt::format("{:.2f}", launch::median(ratios)),
                         fmt::format("{:.2f}", std::max(launch::noise(mine), launch::noise(theirs))), note()});
  report.results.push_back({{"name", name},
                            {"peer", who},
                            {"ours_ms", launch::median(mine)},
                            {"peer_ms", launch::median(theirs)},
                            {"ratio", launch::median(ratios)},
                            {"noise", std::max(launch::noise(mine), launch::noise(theirs))},
                            {"note", agree_note + note()},
                            {"ours_peak_mb", launch::peak_memory_mb()},
                            {"peer_peak_mb", last["peak_mb"]}});
}

void bench_peers(const OracleBenchOptions& o, Report& report) {
  launch::check_peer_files(o.peer);
  launch::install_peer(o.peer);
  const launch::BenchFolder folder;
  const auto command = [&](const std::string& what) {
    return std::vector<std::string>{"/usr/bin/env",
                                    fmt::format("OPENBLAS_NUM_THREADS={}", o.threads),
                                    fmt::format("OMP_NUM_THREADS={}", o.threads),
                                    o.peer.python,
                                    o.peer.script,
                                    "--packages",
                                    o.peer.packages,
                                    "--what",
                                    what,
                                    "--folder",
                                    folder.path,
                                    "--clusters",
                                    std::to_string(o.classes),
                                    "--threads",
                                    std::to_string(o.threads)};
  };
  report.rows = {{"what", "peer", "ours ms", "peer ms", "ratio", "noise", "figures"}};
  {
    const std::vector<int64_t> ids = first_samples(o.kmeans_rows);
    const at::Tensor rows = synthetic_rows(ids, o.dims, o.classes, o.threads);
    io::write_feature_file(folder.path + "/rows.npy",
                           {.features = rows, .labels = {}, .ids = {}, .classes = {}, .about = {}});
    const auto comm = comm::make_local_comm();
    oracle::Kmeans found;
    std::vector<double> mine, theirs;  // per turn, because they depend on the first centers
    bench_peer(
        o, fmt::format("k-means {} x {}, {} clusters, 20 iterations", o.kmeans_rows, o.dims, o.classes),
        command("kmeans"),
        [&] {
          const auto start = BenchClock::now();
          found = oracle::kmeans(
              rows, ids, {.clusters = o.classes, .iterations = 20, .per_cluster = 0, .seed = mine.size() + 1}, *comm);
          return ms_since(start);
        },
        report, "mean 1 - cosine, median over turns ",
        [&] {
          mine.push_back(inertia(rows, found.centers));
          theirs.push_back(inertia(rows, data::read_features(folder.path + "/centers.npy").rows));
        },
        [&] {
          return fmt::format("ours {:.5f} (noise {:.3f}), peer {:.5f} (noise {:.3f})", launch::median(mine),
                             launch::noise(mine), launch::median(theirs), launch::noise(theirs));
        });
  }
  // Both sides know every fourth sample.
  std::vector<int64_t> labels(static_cast<size_t>(o.peer_pool), -1), shown(labels.size(), -1);
  for (int64_t s = 0; s < o.peer_pool; ++s) shown[s] = s % 4 == 0 ? class_of_sample(s, o.classes) : -1;
  oracle::Pool pool{first_samples(o.peer_pool),
                    synthetic_rows(first_samples(o.peer_pool), o.dims, o.classes, o.threads)};
  io::write_feature_file(folder.path + "/pool.npy",
                         {.features = pool.embeddings, .labels = shown, .ids = {}, .classes = {}, .about = {}});
  graph::GraphStore store(o.peer_pool);
  store.set_labels(shown);
  const auto sampler = oracle::make_query_sampler(spec_of({"oracle.sampler=uncertainty"}).oracle);
  bench_peer(
      o, fmt::format("margin sampling, pool {} x {}, {} classes", o.peer_pool, o.dims, o.classes), command("modal"),
      [&] {
        const auto start = BenchClock::now();
        sampler->choose(store, pool, {.seed = 1, .round = 0, .questions = o.questions});
        return ms_since(start);
      },
      report, "", [] {}, [] { return std::string("fit and query"); });
}

}  // namespace

const std::vector<std::string>& oracle_bench_samplers() { return kSamplers; }

int bench_oracle(const OracleBenchOptions& o, const std::string& program) {
  at::set_num_threads(o.threads);
  json results = json::array();
  Report rounds, peers;
  bench_samplers(o, program, rounds);
  for (const json& r : rounds.results) results.push_back(r);
  if (o.peer_pool > 0) {
    bench_peers(o, peers);
    fmt::print("{}", launch::format_table(peers.rows));
    for (const json& r : peers.results) results.push_back(r);
  }
  if (!o.json.empty()) {
    const json out = {{"machine", {{"cpu", launch::proc_field("/proc/cpuinfo", "model name")}, {"threads", o.threads}}},
                      {"results", results}};
    io::write_file_atomically(o.json, out.dump(2) + "\n");
  }
  return 0;
}

}  // namespace pal::bench
