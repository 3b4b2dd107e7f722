// large_set: a data set as large as ImageNet, of records of 48 bytes, opened by four processes at once.
#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "core/data/dataset.h"
#include "core/data/loader/epoch_sampler.h"
#include "core/data/shard_writer.h"
#include "launch/process/machine.h"
#include "launch/process/subprocess.h"
#include "launch/terminal.h"
#include "tests/bench/bench.h"

namespace pal::bench {
namespace {

using nlohmann::json;

constexpr int64_t kShards = 16, kClasses = 1000, kRecordBytes = 48, kOpeners = 4;

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void write_large_set(const std::string& folder, int64_t records) {
  data::ShardSpec spec;
  spec.shape = {4, 4, 3};
  for (int64_t c = 0; c < kClasses; ++c) spec.classes.push_back(fmt::format("n{:08d}", c));
  for (int64_t k = 0; k < kShards; ++k) {
    data::ShardWriter writer(fmt::format("{}/large-{:05d}-of-{:05d}.h5", folder, k, kShards), spec);
    for (int64_t i = k * records / kShards; i < (k + 1) * records / kShards; ++i) {
      const std::vector<uint8_t> record(kRecordBytes, static_cast<uint8_t>(i));
      const std::string id = fmt::format("n{:08d}/{}.JPEG", i * kClasses / records, i);
      writer.append({record.data(), record.size(), i * kClasses / records, id});
    }
    writer.finish();
    writer.publish();
  }
}

// Rss counts shared pages fully in every process, Pss divides them among processes, own counts private pages only.
struct Resident {
  double rss = 0, pss = 0, own = 0;  // MB

  Resident() {
    const auto field = [](const char* name) {
      const std::string text = launch::proc_field("/proc/self/smaps_rollup", name);
      return text.empty() ? 0 : std::stod(text) / 1024;
    };
    rss = field("Rss");
    pss = field("Pss");
    own = field("Private_Dirty") + field("Private_Clean");
  }
};

// The mean number of classes in a batch of 256: the quality of the shuffle of records that are sorted by class.
double classes_in_a_batch(const data::Dataset& data, data::Shuffle shuffle) {
  const data::EpochSpec plan{data.size(), 256, 1, shuffle};
  constexpr int64_t kBatches = 100;
  double sum = 0;
  for (int64_t k = 0; k < kBatches; ++k) {
    std::set<int64_t> classes;
    for (const int64_t sample : data::batch_samples(plan, k * plan.steps_per_epoch() / kBatches))
      classes.insert(data.labels()[static_cast<size_t>(sample)]);
    sum += static_cast<double>(classes.size());
  }
  return sum / kBatches;
}

}  // namespace

int bench_open_side(const std::string& folder) {
  const Resident before;  // the program with its libraries: LibTorch, MPI, HDF5
  std::shared_ptr<data::Dataset> data;
  const double open = seconds_of([&] { data = data::Dataset::open(folder); });
  int64_t sum = 0;
  json plans;
  for (const data::Shuffle shuffle : {data::Shuffle::full, data::Shuffle::windows}) {
    const data::EpochSpec plan{data->size(), 4096, 1, shuffle};
    plans.push_back(seconds_of([&] {
      for (int64_t s = 0; s < plan.steps_per_epoch(); ++s) {
        for (const int64_t sample : data::batch_samples(plan, s)) sum += sample;
      }
    }));
  }
  std::cout << json{{"opened", true}}.dump() << std::endl;
  std::string word;
  std::cin >> word;  // sent when all have opened it
  const Resident now;
  std::cout << json{{"open_s", open},
                    {"plan_s", plans},
                    {"checksum", sum},
                    {"rss_mb", now.rss},
                    {"pss_mb", now.pss},
                    {"own_mb", now.own},
                    {"libraries_rss_mb", before.rss},
                    {"libraries_own_mb", before.own},
                    {"classes_in_a_batch",
                     {classes_in_a_batch(*data, data::Shuffle::full),
                      classes_in_a_batch(*data, data::Shuffle::windows)}}}
                   .dump()
            << std::endl;
  std::cin >> word;  // sent when all have measured
  return 0;
}

std::string bench_large_set(const DataBenchOptions& options, const std::string& program) {
  const launch::BenchFolder folder;
  const double write = seconds_of([&] { write_large_set(folder.path, options.records); });
  fmt::print("\n{} records in {} shards written in {:.1f} s; opened by {} processes at once:\n", options.records,
             kShards, write, kOpeners);
  std::fflush(stdout);
  std::vector<std::unique_ptr<launch::Subprocess>> openers;
  for (int64_t k = 0; k < kOpeners; ++k) {
    openers.push_back(
        std::make_unique<launch::Subprocess>(std::vector<std::string>{program, "data", "--open", folder.path}));
  }
  json answers = json::array();
  for (auto& opener : openers) opener->read_line();
  std::vector<std::vector<std::string>> rows = {{"process", "open s", "plan of an epoch s", "in windows s", "Rss MB",
                                                 "of which at start", "Pss MB", "own MB", "of which at start",
                                                 "set adds MB"}};
  for (auto& opener : openers) {
    opener->write_line("measure");
    answers.push_back(json::parse(opener->read_line()));
    const json& a = answers.back();
    const auto seconds = [](const json& s) { return fmt::format("{:.3f}", s.get<double>()); };
    const auto megabytes = [](double mb) { return fmt::format("{:.0f}", mb); };
    const double own = a["own_mb"], own_at_start = a["libraries_own_mb"];
    rows.push_back({std::to_string(answers.size() - 1), seconds(a["open_s"]), seconds(a["plan_s"][0]),
                    seconds(a["plan_s"][1]), megabytes(a["rss_mb"]), megabytes(a["libraries_rss_mb"]),
                    megabytes(a["pss_mb"]), megabytes(own), megabytes(own_at_start), megabytes(own - own_at_start)});
  }
  for (auto& opener : openers) {
    opener->write_line("end");
    opener->wait();
  }
  fmt::print(
      "{}Rss counts the libraries' pages in each process, Pss shares them out among the {}; own pages are a process's "
      "alone.\n"
      "At start, before anything is opened, it is LibTorch: its libraries and its registry of operators\n",
      launch::format_table(rows), kOpeners);
  const double full = answers[0]["classes_in_a_batch"][0], windows = answers[0]["classes_in_a_batch"][1];
  fmt::print(
      "classes in a batch of 256 of records that lie class by class: {:.1f} by a full shuffle, {:.1f} in windows "
      "({:.1f} %)\n",
      full, windows, 100 * windows / full);
  return answers.dump();
}

}  // namespace pal::bench
