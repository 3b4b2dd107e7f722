// bench_large_set: a data set as large as ImageNet, of records of 48 bytes, opened by four processes at once.
#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/data/dataset.h"
#include "core/data/sampler.h"
#include "core/data/shard_writer.h"
#include "launch/bench_data.h"
#include "launch/child.h"
#include "launch/machine.h"
#include "launch/table.h"

namespace pal {
namespace {

using nlohmann::json;

constexpr int64_t kShards = 16, kClasses = 1000, kRecordBytes = 48, kOpeners = 4;

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void write_large_set(const std::string& folder, int64_t records) {
  ShardSpec spec;
  spec.shape = {4, 4, 3};
  for (int64_t c = 0; c < kClasses; ++c) spec.classes.push_back(fmt::format("n{:08d}", c));
  for (int64_t k = 0; k < kShards; ++k) {
    ShardWriter writer(fmt::format("{}/large-{:05d}-of-{:05d}.h5", folder, k, kShards), spec);
    for (int64_t i = k * records / kShards; i < (k + 1) * records / kShards; ++i) {
      const std::vector<uint8_t> record(kRecordBytes, static_cast<uint8_t>(i));
      const std::string id = fmt::format("n{:08d}/{}.JPEG", i * kClasses / records, i);
      writer.append({record.data(), record.size(), i * kClasses / records, id});
    }
    writer.finish();
    writer.publish();
  }
}

double resident_mb(const char* field) {
  const std::string text = proc_field("/proc/self/status", field);
  return text.empty() ? 0 : std::stod(text) / 1024;
}

}  // namespace

int bench_open_side(const std::string& folder) {
  const double before = resident_mb("VmRSS"), own_before = resident_mb("RssAnon");
  std::shared_ptr<Dataset> data;
  const double open = seconds_of([&] { data = Dataset::open(folder); });
  int64_t sum = 0;
  json plans;
  for (const Shuffle shuffle : {Shuffle::full, Shuffle::windows}) {
    const EpochPlan plan{data->size(), 4096, 1, shuffle};
    plans.push_back(seconds_of([&] {
      for (int64_t s = 0; s < plan.steps_per_epoch(); ++s) {
        for (const int64_t sample : batch_samples(plan, s)) sum += sample;
      }
    }));
  }
  std::cout << json{{"open_s", open}, {"plan_s", plans}, {"checksum", sum}, {"rss_mb", resident_mb("VmRSS")}, {"rss_before_mb", before},
                    {"own_mb", resident_mb("RssAnon") - own_before}}.dump()
            << std::endl;
  return 0;
}

std::string bench_large_set(const DataBenchOptions& options, const std::string& program) {
  const BenchFolder folder;
  const double write = seconds_of([&] { write_large_set(folder.path, options.records); });
  fmt::print("\n{} records in {} shards written in {:.1f} s; opened by {} processes at once:\n", options.records, kShards, write, kOpeners);
  std::fflush(stdout);
  std::vector<std::unique_ptr<Child>> openers;
  for (int64_t k = 0; k < kOpeners; ++k) {
    openers.push_back(std::make_unique<Child>(std::vector<std::string>{program, "bench", "data", "--open", folder.path}));
  }
  json answers = json::array();
  std::vector<std::vector<std::string>> rows = {{"process", "open s", "plan of an epoch s", "in windows s", "resident MB", "of it the set MB"}};
  for (auto& opener : openers) {
    answers.push_back(json::parse(opener->read_line()));
    opener->wait();
    const json& a = answers.back();
    rows.push_back({std::to_string(answers.size() - 1), fmt::format("{:.3f}", a["open_s"].get<double>()), fmt::format("{:.3f}", a["plan_s"][0].get<double>()),
                    fmt::format("{:.3f}", a["plan_s"][1].get<double>()), fmt::format("{:.0f}", a["rss_mb"].get<double>()),
                    fmt::format("{:.0f}", a["own_mb"].get<double>())});
  }
  fmt::print("{}", format_table(rows));
  return answers.dump();
}

}  // namespace pal
