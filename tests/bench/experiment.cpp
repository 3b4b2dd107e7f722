// experiment: the active figure in closed form, ours against straightforward numpy, in turns on the same cores.
//
// The parent writes data, draws and pairs of every trial into a folder for numpy, so that both sides compute the same
// trials. Before timing, nine in ten errors must be equal and the curves must agree.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/io/files.h"
#include "core/theory/figures.h"
#include "core/theory/one_thread.h"
#include "core/theory/query_game.h"
#include "kernels/base/error.h"
#include "launch/process/machine.h"
#include "launch/process/subprocess.h"
#include "launch/terminal.h"
#include "tests/bench/bench.h"

namespace pal::bench {
namespace {

using nlohmann::json;

void write_doubles(const std::string& path, const std::vector<double>& x) {
  io::FileWriter file(path);
  file.write(x.data(), x.size() * sizeof(double));
  file.finish();
}

std::vector<double> read_doubles(const std::string& path) {
  const std::string bytes = io::read_whole_file(path);
  std::vector<double> x(bytes.size() / sizeof(double));
  std::memcpy(x.data(), bytes.data(), x.size() * sizeof(double));
  return x;
}

void append(std::vector<double>& out, const theory::ToySet& set) {
  out.insert(out.end(), set.x.data.begin(), set.x.data.end());
  out.insert(out.end(), set.y.begin(), set.y.end());
}

// The random draws of the trials, in order of use.
void write_trials(const std::string& folder, const theory::ExperimentOptions& o) {
  std::vector<double> test, train, draws, pairs;
  append(test, theory::test_set(o));
  for (int64_t t = 0; t < o.trials; ++t) {
    Random data = theory::trial_random(o, t, theory::kDataStream),
           choices = theory::trial_random(o, t, theory::kChoiceStream),
           order = theory::trial_random(o, t, theory::kPairStream);
    append(train, theory::toy_train(o.dataset, o.n, o.noise, data));
    for (int64_t k = 0; k < o.steps * o.batch; ++k) draws.push_back(choices.next_double());
    const auto all = theory::random_pairs(o.n, order);
    for (int64_t k = 0; k < o.steps * o.batch; ++k) {
      pairs.push_back(all[k].first);
      pairs.push_back(all[k].second);
    }
  }
  write_doubles(folder + "/test", test);
  write_doubles(folder + "/train", train);
  write_doubles(folder + "/draws", draws);
  write_doubles(folder + "/pairs", pairs);
}

// The 0-1 errors (trial, series, step).
std::vector<double> our_errors(const theory::ExperimentOptions& o) {
  const theory::OneThread scope;
  const theory::FigureSpec& f = theory::figure("active");
  const theory::ToySet test = theory::test_set(o);
  std::vector<double> all;
  for (int64_t t = 0; t < o.trials; ++t) {
    theory::TrialCurves curves{theory::Matrix(2, o.steps), theory::Matrix(2, o.steps), theory::Matrix(3, o.steps)};
    f.trial(curves, o, test, t);
    all.insert(all.end(), curves.error.data.begin(), curves.error.data.end());
  }
  return all;
}

struct Agreement {
  double equal = 0;  // share of errors that are the same number
  double mean = 0;   // largest difference of the mean curves
};
// If rounding breaks a tie of two classes differently, the next question and the rest of that trial differ.
Agreement compare_errors(const std::vector<double>& a, const std::vector<double>& b, int64_t trials) {
  PAL_CHECK_CODE(Exit::check_failed, a.size() == b.size(), "numpy answered with another number of errors", b.size(),
                 "nothing was timed");
  Agreement result;
  const size_t width = a.size() / static_cast<size_t>(trials);
  for (size_t k = 0; k < width; ++k) {
    double difference = 0;
    for (size_t t = 0; t < static_cast<size_t>(trials); ++t) {
      difference += a[t * width + k] - b[t * width + k];
      result.equal += std::abs(a[t * width + k] - b[t * width + k]) < 1e-9;
    }
    result.mean = std::max(result.mean, std::abs(difference) / static_cast<double>(trials));
  }
  result.equal /= static_cast<double>(a.size());
  return result;
}

double our_ms(const theory::ExperimentOptions& o) {
  const auto start = std::chrono::steady_clock::now();
  theory::run_figure(theory::figure("active"), o, *comm::make_local_comm());
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int bench_experiment(const ExperimentBenchOptions& options) {
  launch::check_peer_files(options.peer);
  theory::ExperimentOptions o = theory::with_dataset(theory::figure("active"), theory::ToyKind::circles);
  o.trials = options.trials;
  o.threads = options.threads;
  o.seed = 1;
  const launch::BenchFolder folder;
  write_trials(folder.path, o);
  const std::vector<double> errors = our_errors(o);

  json results = json::array();
  std::vector<std::vector<std::string>> rows = {
      {"peer", "ours ms", "peer ms", "ratio", "noise", "equal errors", "mean curves apart"}};
  // As one process with threaded BLAS, as in a plain script, and as one process per core.
  for (int processes : {1, options.threads}) {
    const int blas = options.threads / processes;
    launch::Subprocess peer({"/usr/bin/env", fmt::format("OPENBLAS_NUM_THREADS={}", blas),
                             fmt::format("OMP_NUM_THREADS={}", blas), options.peer.python, options.peer.script,
                             folder.path, "--trials", std::to_string(o.trials), "--n", std::to_string(o.n), "--test",
                             std::to_string(o.test), "--steps", std::to_string(o.steps), "--batch",
                             std::to_string(o.batch), "--processes", std::to_string(processes)});
    peer.read_line();  // ready
    peer.write_line("check " + folder.path + "/errors");
    peer.read_line();
    const Agreement agreement = compare_errors(errors, read_doubles(folder.path + "/errors"), o.trials);
    PAL_CHECK_CODE(Exit::check_failed, agreement.equal >= 0.9 && agreement.mean <= 0.02,
                   "ours and numpy do not compute the same; equal errors", fmt::format("{:.3f}", agreement.equal),
                   "nothing was timed");
    std::vector<double> ours, theirs, ratios;
    for (int t = 0; t < options.turns; ++t) {
      ours.push_back(our_ms(o));
      peer.write_line("go");
      theirs.push_back(json::parse(peer.read_line())["ms"]);
      ratios.push_back(theirs.back() / ours.back());
    }
    peer.write_line("end");
    peer.wait();
    const std::string name = fmt::format("numpy, {} process{} × {} BLAS thread{}", processes,
                                         processes == 1 ? "" : "es", blas, blas == 1 ? "" : "s");
    rows.push_back({name, fmt::format("{:.0f}", launch::median(ours)), fmt::format("{:.0f}", launch::median(theirs)),
                    fmt::format("{:.2f}", launch::median(ratios)),
                    fmt::format("{:.3f}", std::max(launch::noise(ours), launch::noise(theirs))),
                    fmt::format("{:.4f}", agreement.equal), fmt::format("{:.1e}", agreement.mean)});
    results.push_back({{"name", "experiment active"},
                       {"params", {{"trials", o.trials}, {"steps", o.steps}, {"n", o.n}, {"threads", o.threads}}},
                       {"ours_ms", launch::median(ours)},
                       {"peer", name},
                       {"peer_ms", launch::median(theirs)},
                       {"ratio", launch::median(ratios)},
                       {"noise", std::max(launch::noise(ours), launch::noise(theirs))},
                       {"equal_errors", agreement.equal},
                       {"mean_apart", agreement.mean},
                       {"ours_peak_mb", launch::peak_memory_mb()},
                       {"ours_samples_ms", ours},
                       {"peer_samples_ms", theirs}});
  }
  fmt::print("the active figure, {} trials × {} steps × 2 series, N = {}, {} threads\n{}", o.trials, o.steps, o.n,
             o.threads, launch::format_table(rows));
  if (!options.json.empty()) {
    const json out = {
        {"machine", {{"cpu", launch::proc_field("/proc/cpuinfo", "model name")}, {"threads", options.threads}}},
        {"results", results}};
    io::write_file_atomically(options.json, out.dump(2) + "\n");
  }
  return 0;
}

}  // namespace pal::bench
