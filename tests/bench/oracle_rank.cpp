// oracle_rank: one rank of the oracle benchmark: its slice of synthetic embeddings, and the collective choices.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/eval/embed.h"
#include "core/io/sha256.h"
#include "core/oracle/oracle.h"
#include "core/oracle/round/pool.h"
#include "core/oracle/samplers/samplers.h"
#include "dist/comm/world.h"
#include "kernels/base/philox.h"
#include "launch/process/machine.h"
#include "tests/bench/bench.h"
#include "tests/core/spec_of.h"

namespace pal::bench {

int64_t class_of_sample(int64_t sample, int64_t classes) {
  return static_cast<int64_t>(
      Random(1, Purpose::bench, 1, static_cast<uint64_t>(sample)).below(static_cast<uint64_t>(classes)));
}

at::Tensor synthetic_rows(const std::vector<int64_t>& samples, int64_t dims, int64_t classes, int threads) {
  at::Tensor rows = at::empty({static_cast<int64_t>(samples.size()), dims}, at::kFloat);
  float* const x = rows.data_ptr<float>();
  const auto n = static_cast<int64_t>(samples.size());
  const auto work = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      Random center(1, Purpose::bench, 2, static_cast<uint64_t>(class_of_sample(samples[i], classes))),
          noise(1, Purpose::bench, 3, static_cast<uint64_t>(samples[i]));
      double square = 0;
      for (int64_t k = 0; k < dims; ++k) {
        const float v = center.uniform(-1, 1) + noise.uniform(-1, 1);
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

namespace {

using BenchClock = std::chrono::steady_clock;

// The store of N samples with four known members of each class.
graph::GraphStore known_store(const OracleBenchOptions& o) {
  std::vector<int64_t> labels(static_cast<size_t>(o.samples), -1), seen(static_cast<size_t>(o.classes), 0);
  for (int64_t s = 0; s < o.samples; ++s) {
    const int64_t c = class_of_sample(s, o.classes);
    if (seen[c]++ < 4) labels[s] = c;
  }
  graph::GraphStore store(o.samples);
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

// Collective. The largest of all ranks.
double most_of(double value, comm::Comm& comm) {
  const at::Tensor t = at::full({1}, value, at::kDouble);
  comm.all_reduce(t, comm::ReduceOp::max);
  return t.item<double>();
}

std::string text_of(const std::vector<oracle::Query>& queries) {
  std::string text;
  for (const oracle::Query& q : queries) {
    text += fmt::format("{} {} {}:", static_cast<int>(q.kind), q.template_sample, q.node);
    for (int64_t m : q.members) text += fmt::format(" {}", m);
    text += '\n';
  }
  return text;
}

}  // namespace

void bench_oracle_rank(const OracleBenchOptions& o, dist::World& world) {
  at::set_num_threads(o.threads);
  comm::Comm& comm = world.oracle();
  const graph::GraphStore store = known_store(o);
  const std::vector<int64_t> drawn = oracle::draw_pool(store, o.pool, 1, 0);
  const eval::SampleSlice slice = eval::own_slice(static_cast<int64_t>(drawn.size()), comm);
  const at::Tensor embeddings =
      synthetic_rows({drawn.begin() + slice.first, drawn.begin() + slice.last}, o.dims, o.classes, o.threads);
  const std::vector<int64_t> parents = two_levels(o.classes);
  for (const std::string& name : oracle_bench_samplers()) {
    const auto sampler = oracle::make_query_sampler(spec_of({"oracle.sampler=" + name}).oracle, parents);
    std::vector<double> ms;
    std::vector<oracle::Query> queries;
    for (int t = 0; t < o.turns; ++t) {
      comm.barrier();
      const auto start = BenchClock::now();
      oracle::Pool pool{oracle::draw_pool(store, o.pool, 1, 0, {}, sampler->refused_order()),
                        {}};  // no question is pending: all samplers get the same pool
      const bool embedded = sampler->needs() != oracle::PoolNeeds::samples;
      if (embedded) {
        pool.embeddings = embeddings;
        pool.first = slice.first;
        pool.comm = &comm;
      }
      if (embedded || comm.rank() == 0)
        queries = sampler->choose(store, pool, {.seed = 1, .round = 0, .questions = o.questions});
      ms.push_back(most_of(std::chrono::duration<double, std::milli>(BenchClock::now() - start).count(), comm));
    }
    const double peak = most_of(launch::peak_memory_mb(), comm);
    if (comm.rank() != 0) continue;
    const std::string text = text_of(queries);
    fmt::print("{}\n", nlohmann::json{{"name", name},
                                      {"ms", ms},
                                      {"questions", oracle::question_count(queries)},
                                      {"asked", io::sha256_hex(text.data(), text.size())},
                                      {"peak_mb", peak}}
                           .dump());
    std::fflush(stdout);
  }
}

}  // namespace pal::bench
