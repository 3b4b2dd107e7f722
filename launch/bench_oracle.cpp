#include "launch/bench_oracle.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/config/config.h"
#include "core/data/feature_set.h"
#include "core/io/feature_file.h"
#include "core/io/files.h"
#include "core/oracle/kmeans.h"
#include "core/oracle/oracle.h"
#include "core/oracle/products.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"
#include "launch/child.h"
#include "launch/machine.h"
#include "launch/table.h"

namespace pal {
namespace {

using nlohmann::json;
using BenchClock = std::chrono::steady_clock;

double ms_since(BenchClock::time_point start) { return std::chrono::duration<double, std::milli>(BenchClock::now() - start).count(); }

int64_t class_of_sample(int64_t sample, int64_t classes) { return static_cast<int64_t>(Random(1, Purpose::bench, 1, static_cast<uint64_t>(sample)).below(static_cast<uint64_t>(classes))); }

// Unit rows: the class's direction plus noise of the same length (uniform, a third of the cost of normals).
at::Tensor synthetic_rows(const std::vector<int64_t>& samples, int64_t dims, int64_t classes, int threads) {
  at::Tensor rows = at::empty({static_cast<int64_t>(samples.size()), dims}, at::kFloat);
  float* const x = rows.data_ptr<float>();
  const auto n = static_cast<int64_t>(samples.size());
  const auto work = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      Random centre(1, Purpose::bench, 2, static_cast<uint64_t>(class_of_sample(samples[i], classes))), noise(1, Purpose::bench, 3, static_cast<uint64_t>(samples[i]));
      double square = 0;
      for (int64_t k = 0; k < dims; ++k) {
        const float v = centre.uniform(-1, 1) + noise.uniform(-1, 1);
        x[i * dims + k] = v;
        square += static_cast<double>(v) * v;
      }
      for (int64_t k = 0; k < dims; ++k) x[i * dims + k] = static_cast<float>(x[i * dims + k] / std::sqrt(square));
    }
  };
  std::vector<std::jthread> helpers;
  for (int t = 1; t < threads; ++t) helpers.emplace_back(work, n * t / threads, n * (t + 1) / threads);
  work(0, n / threads);
  helpers.clear();
  return rows;
}

std::vector<int64_t> first_samples(int64_t n) {
  std::vector<int64_t> ids(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) ids[i] = i;
  return ids;
}

// The store of N samples with four known members of each class.
GraphStore known_store(const OracleBenchOptions& o) {
  std::vector<int64_t> labels(static_cast<size_t>(o.samples), -1), seen(static_cast<size_t>(o.classes), 0);
  for (int64_t s = 0; s < o.samples; ++s) {
    const int64_t c = class_of_sample(s, o.classes);
    if (seen[c]++ < 4) labels[s] = c;
  }
  GraphStore store(o.samples);
  store.set_labels(labels);
  return store;
}

// Groups of about √C classes below one root.
std::vector<int64_t> two_levels(int64_t classes) {
  const auto groups = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(classes))));
  std::vector<int64_t> parents;
  for (int64_t c = 0; c < classes; ++c) parents.push_back(classes + c % groups);
  for (int64_t g = 0; g < groups; ++g) parents.push_back(classes + groups);
  parents.push_back(-1);
  return parents;
}

// Mean of 1 − cosine to the nearest centre: the same judge for both sides.
double inertia(const at::Tensor& rows, const at::Tensor& centres) {
  double sum = 0;
  for (int64_t begin = 0; begin < rows.size(0); begin += 4096) {
    const int64_t n = std::min<int64_t>(4096, rows.size(0) - begin);
    const at::Tensor p = times_transposed(rows.narrow(0, begin, n), centres);
    for (int64_t i = 0; i < n; ++i) sum += 1 - *std::max_element(p.const_data_ptr<float>() + i * p.size(1), p.const_data_ptr<float>() + (i + 1) * p.size(1));
  }
  return sum / static_cast<double>(rows.size(0));
}

struct Report {
  json results = json::array();
  std::vector<std::vector<std::string>> rows;
};

void bench_samplers(const OracleBenchOptions& o, Report& report) {
  const GraphStore store = known_store(o);
  const std::vector<int64_t> pool_samples = draw_pool(store, o.pool, 1, 0);
  const at::Tensor embeddings = synthetic_rows(pool_samples, o.dims, o.classes, o.threads);
  const std::vector<int64_t> parents = two_levels(o.classes);
  report.rows = {{"sampler", "ms per round", "ms per question", "questions"}};
  for (const char* name : {"supervised", "random", "captcha", "outliers", "nnclr", "pruning", "uncertainty", "ensemble", "model_change", "gradients", "typical", "k_center", "merging", "coarse"}) {
    const auto sampler = make_query_sampler(Config::defaults({std::string("oracle.sampler=") + name}), parents);
    std::vector<double> ms;
    int64_t questions = 0;
    for (int t = 0; t < o.turns; ++t) {
      const auto start = BenchClock::now();
      Pool pool{draw_pool(store, o.pool, 1, 0, {}, sampler->begun()), {}};
      if (sampler->needs() != PoolNeeds::samples) pool.embeddings = embeddings;
      questions = question_count(sampler->choose(store, pool, {.seed = 1, .round = 0, .questions = o.questions}));
      ms.push_back(ms_since(start));
    }
    report.rows.push_back({name, fmt::format("{:.0f}", median(ms)), fmt::format("{:.2f}", median(ms) / static_cast<double>(std::max<int64_t>(questions, 1))), std::to_string(questions)});
    report.results.push_back({{"name", std::string("round ") + name}, {"params", {{"N", o.samples}, {"D", o.dims}, {"C", o.classes}, {"pool", o.pool}, {"questions", o.questions}}},
                              {"ours_ms", median(ms)}, {"noise", noise(ms)}, {"ours_peak_mb", peak_memory_mb()}, {"ours_samples_ms", ms}});
  }
}

// Ours and the peer's turns; `ours` returns ms, `judge` looks at what a turn left behind.
template <class F>
void bench_peer(const OracleBenchOptions& o, const std::string& name, const std::vector<std::string>& command, const F& ours, Report& report, const std::string& agree_note,
                const std::function<void()>& judge, const std::function<std::string()>& note) {
  Child peer(command);
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
  report.rows.push_back({name, who, fmt::format("{:.0f}", median(mine)), fmt::format("{:.0f}", median(theirs)), fmt::format("{:.2f}", median(ratios)),
                         fmt::format("{:.2f}", std::max(noise(mine), noise(theirs))), note()});
  report.results.push_back({{"name", name}, {"peer", who}, {"ours_ms", median(mine)}, {"peer_ms", median(theirs)}, {"ratio", median(ratios)},
                            {"noise", std::max(noise(mine), noise(theirs))}, {"note", agree_note + note()}, {"ours_peak_mb", peak_memory_mb()}, {"peer_peak_mb", last["peak_mb"]}});
}

void bench_peers(const OracleBenchOptions& o, Report& report) {
  check_peer_files(o.peer);
  install_peer(o.peer);
  const BenchFolder folder;
  const auto command = [&](const std::string& what) {
    return std::vector<std::string>{"/usr/bin/env", fmt::format("OPENBLAS_NUM_THREADS={}", o.threads), fmt::format("OMP_NUM_THREADS={}", o.threads), o.peer.python, o.peer.script,
                                    "--packages", o.peer.packages, "--what", what, "--folder", folder.path, "--clusters", std::to_string(o.classes), "--threads", std::to_string(o.threads)};
  };
  report.rows = {{"what", "peer", "ours ms", "peer ms", "ratio", "noise", "figures"}};
  {
    const std::vector<int64_t> ids = first_samples(o.kmeans_rows);
    const at::Tensor rows = synthetic_rows(ids, o.dims, o.classes, o.threads);
    write_feature_file(folder.path + "/rows.npy", {.features = rows, .labels = {}, .ids = {}, .classes = {}, .about = {}});
    const auto comm = make_local_comm();
    Kmeans found;
    std::vector<double> mine, theirs;   // of each turn: it depends on the first centres
    bench_peer(o, fmt::format("k-means {} x {}, {} clusters, 20 iterations", o.kmeans_rows, o.dims, o.classes), command("kmeans"), [&] {
      const auto start = BenchClock::now();
      found = kmeans(rows, ids, {.clusters = o.classes, .iterations = 20, .per_cluster = 0, .seed = mine.size() + 1}, *comm);
      return ms_since(start);
    }, report, "mean 1 - cosine, median over turns ", [&] {
      mine.push_back(inertia(rows, found.centres));
      theirs.push_back(inertia(rows, read_features(folder.path + "/centres.npy").rows));
    }, [&] {
      return fmt::format("ours {:.5f} (noise {:.3f}), peer {:.5f} (noise {:.3f})", median(mine), noise(mine), median(theirs), noise(theirs));
    });
  }
  // Every fourth sample is known, for both sides.
  std::vector<int64_t> labels(static_cast<size_t>(o.peer_pool), -1), shown(labels.size(), -1);
  for (int64_t s = 0; s < o.peer_pool; ++s) shown[s] = s % 4 == 0 ? class_of_sample(s, o.classes) : -1;
  Pool pool{first_samples(o.peer_pool), synthetic_rows(first_samples(o.peer_pool), o.dims, o.classes, o.threads)};
  write_feature_file(folder.path + "/pool.npy", {.features = pool.embeddings, .labels = shown, .ids = {}, .classes = {}, .about = {}});
  GraphStore store(o.peer_pool);
  store.set_labels(shown);
  const auto sampler = make_query_sampler(Config::defaults({"oracle.sampler=uncertainty"}));
  bench_peer(o, fmt::format("margin sampling, pool {} x {}, {} classes", o.peer_pool, o.dims, o.classes), command("modal"), [&] {
    const auto start = BenchClock::now();
    sampler->choose(store, pool, {.seed = 1, .round = 0, .questions = o.questions});
    return ms_since(start);
  }, report, "", [] {}, [] { return std::string("fit and query"); });
}

}  // namespace

int bench_oracle(const OracleBenchOptions& o) {
  at::set_num_threads(o.threads);
  json results = json::array();
  Report rounds, peers;
  bench_samplers(o, rounds);
  fmt::print("a round of {} questions at N = {}, D = {}, C = {}, a drawn pool of {}, {} threads\n{}", o.questions, o.samples, o.dims, o.classes, o.pool, o.threads, format_table(rounds.rows));
  fmt::print("peak memory {:.0f} MB, embeddings of the pool included\n", peak_memory_mb());
  for (const json& r : rounds.results) results.push_back(r);
  if (o.peer_pool > 0) {
    bench_peers(o, peers);
    fmt::print("{}", format_table(peers.rows));
    for (const json& r : peers.results) results.push_back(r);
  }
  if (!o.json.empty()) {
    const json out = {{"machine", {{"cpu", proc_field("/proc/cpuinfo", "model name")}, {"threads", o.threads}}}, {"results", results}};
    write_file_atomically(o.json, out.dump(2) + "\n");
  }
  return 0;
}

}  // namespace pal
