// metrics_reader and tensorboard: metrics.jsonl after a kill; records with the checksums of the format.
#include "core/record/metrics_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/io/crc32c.h"
#include "core/record/metrics.h"
#include "core/record/run_info.h"
#include "tests/core/data/data_files.h"

namespace pal::record {
namespace {

TEST(MetricsReader, CurvesTermsWarningsAndTheEnd) {
  const TestFolder folder;
  const std::string path = folder / "metrics.jsonl";
  {
    MetricsWriter writer(path, 0);
    StepMetrics m;
    m.terms = {{"variance", 0.5}};
    for (m.step = 10; m.step <= 30; m.step += 10) {
      m.loss = m.step == 20 ? NAN : static_cast<double>(m.step);
      m.warning = m.step == 30 ? "careful" : "";
      writer.write(m);
    }
    EXPECT_FALSE(read_metrics(path).done);
    writer.finish(30, "abc", 12.5);
  }
  const RunMetrics run = read_metrics(path);
  EXPECT_TRUE(run.done);
  EXPECT_EQ(run.seconds, 12.5);
  EXPECT_EQ(run.weights_sha256, "abc");
  const MetricCurve loss = metric_curve(run, "loss");
  EXPECT_EQ(loss.x, (std::vector<double>{10, 20, 30}));
  EXPECT_TRUE(std::isnan(loss.y[1]));
  EXPECT_EQ(last_value(run, "loss", 0), 30);
  EXPECT_EQ(not_finite(run, "loss"), 1);
  EXPECT_EQ(metric_names(run, "terms."), std::vector<std::string>{"terms.variance"});
  EXPECT_EQ(run.warnings, (std::vector<std::pair<int64_t, std::string>>{{30, "careful"}}));
  EXPECT_LT(run.age_seconds, 60);
}

TEST(MetricsReader, SecondsOfAStepAreThoseOfTheLastStart) {
  const TestFolder folder;
  const std::string path = folder / "metrics.jsonl";
  EXPECT_EQ(seconds_per_step({}), 0);
  {
    MetricsWriter writer(path, 0);
    StepMetrics m;
    for (const auto& [step, seconds] : std::vector<std::pair<int64_t, double>>{{10, 50}, {20, 100}, {30, 3}}) {
      m.step = step;
      m.seconds = seconds;
      writer.write(m);
    }
    EXPECT_EQ(seconds_per_step(read_metrics(path)), 0) << "one line of the last start";
    for (m.step = 40; m.step <= 90; m.step += 10) {
      m.seconds = 3 + 0.5 * static_cast<double>(m.step - 30);
      writer.write(m);
    }
  }
  EXPECT_DOUBLE_EQ(seconds_per_step(read_metrics(path)), 0.5);
}

TEST(MetricsReader, EmptyCutAndStrangeFiles) {
  const TestFolder folder;
  const std::string path = folder / "metrics.jsonl";
  data::write_file(path, "");
  EXPECT_TRUE(read_metrics(path).lines.empty());
  data::write_file(
      path, "{\"step\":20,\"loss\":1}\n[1]\nnonsense\n{\"loss\":3}\n{\"step\":10,\"loss\":2}\n{\"step\":30,\"lo");
  const RunMetrics run = read_metrics(path);
  EXPECT_EQ(metric_curve(run, "loss").y, (std::vector<double>{2, 1}));  // in the order of the steps
  EXPECT_EQ(run.bad_lines, 4);
  EXPECT_EQ(last_value(run, "nothing", -1), -1);
  EXPECT_NE(data::error_of(Exit::data, [&] { read_metrics(folder / "none.jsonl"); }), "");
}

TEST(RunInfo, AddsAnEntryForEachStart) {
  const TestFolder folder;
  add_run_info(folder.path().string(), this_machine("2 x 1 threads"));
  add_run_info(folder.path().string(), this_machine("3 x 1 threads"));
  const auto all = read_run_info(folder.path().string());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].at("ranks"), "3 x 1 threads");
  EXPECT_EQ(all[0].at("command"), command_line());
  EXPECT_TRUE(data::contains(command_line(), "core_test")) << command_line();
  data::write_file(folder / "machine.json", "[{\"pal\":");
  EXPECT_TRUE(read_run_info(folder.path().string()).empty());
}

TEST(Tensorboard, RecordsAreFramedWithMaskedChecksums) {
  const std::string record = tensorboard_record("abc");
  ASSERT_EQ(record.size(), 8u + 4 + 3 + 4);
  uint64_t length = 0;
  std::memcpy(&length, record.data(), 8);
  EXPECT_EQ(length, 3u);
  const auto unmasked = [&](size_t at) {
    uint32_t word = 0;
    std::memcpy(&word, record.data() + at, 4);
    const uint32_t rotated = word - 0xa282ead8u;
    return rotated >> 17 | rotated << 15;
  };
  EXPECT_EQ(unmasked(8), io::crc32c(record.data(), 8));
  EXPECT_EQ(unmasked(15), io::crc32c("abc", 3));
  const TestFolder folder;
  TensorboardWriter(folder / "tb", 0);  // nothing written, no file
  EXPECT_FALSE(std::filesystem::exists(folder / "tb"));
}

}  // namespace
}  // namespace pal::record
