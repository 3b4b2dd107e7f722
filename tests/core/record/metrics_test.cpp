// metrics: the fields of a line, resuming after a step, half lines; files: atomic writing and its errors.
#include "core/record/metrics.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/io/file_handle.h"
#include "core/io/files.h"
#include "core/io/sha256.h"
#include "core/record/run_lock.h"
#include "kernels/base/error.h"
#include "tests/test_folder.h"

namespace pal::record {
namespace {

class Metrics : public testing::Test {
 protected:
  std::string path() const { return folder_ / "metrics.jsonl"; }
  std::vector<nlohmann::json> lines() const {
    std::istringstream text(io::read_whole_file(path()));
    std::vector<nlohmann::json> all;
    for (std::string line; std::getline(text, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }
  static StepMetrics at_step(int64_t step) {
    StepMetrics m;
    m.step = step;
    m.epoch = 0.5;
    m.loss = 1.25;
    m.terms = {{"invariance", 1}, {"variance", NAN}};
    m.lr = 0.1;
    m.images_per_s = 1000;
    m.seconds = 7.5;
    m.graph_version = 3;
    m.queries = 4;
    m.cost = 5;
    m.effective_rank = INFINITY;
    m.sync_ms = 2.5;
    m.sync_hidden = 0.75;
    return m;
  }

  TestFolder folder_;
};

TEST_F(Metrics, LinesHaveTheDocumentedFields) {
  MetricsWriter writer(path(), 0);
  writer.write(at_step(1));
  auto first = lines();  // readable while the run writes
  ASSERT_EQ(first.size(), 1u);
  EXPECT_GT(first[0]["memory_mb"].get<double>(), 1.0);
  first[0].erase("memory_mb");
  EXPECT_EQ(first[0],
            nlohmann::json::parse(R"({"step":1,"epoch":0.5,"loss":1.25,"terms":{"invariance":1.0,"variance":null},
    "lr":0.1,"images_per_s":1000.0,"seconds":7.5,"graph_version":3,"queries":4,"cost":5.0,"effective_rank":null,
    "sync_ms":2.5,"sync_hidden":0.75})"));
  writer.finish(2, "abc", 1.5);
  EXPECT_EQ(lines().back(), nlohmann::json::parse(R"({"step":2,"done":true,"weights_sha256":"abc","seconds":1.5})"));
}

TEST_F(Metrics, ContinuesAfterTheStepItResumesFrom) {
  {
    MetricsWriter writer(path(), 0);
    for (const int64_t step : {10, 20, 30}) writer.write(at_step(step));
    writer.finish(30, "abc", 1.5);
  }
  ASSERT_EQ(lines().size(), 4u);
  MetricsWriter(path(), 30);  // a finished run that is made longer: only its last line is removed
  EXPECT_EQ(lines().size(), 3u);
  const std::string whole = io::read_whole_file(path());
  io::write_file_atomically(path(), whole + R"({"step": 31, "ep)");  // cut in a line
  {
    MetricsWriter writer(path(), 20);
    writer.write(at_step(25));
  }
  const auto after = lines();
  ASSERT_EQ(after.size(), 3u);
  EXPECT_EQ(after[0]["step"], 10);
  EXPECT_EQ(after[1]["step"], 20);
  EXPECT_EQ(after[2]["step"], 25);
  // A last line without its end of line is whole, and the next one must not be glued to it.
  const std::string text = io::read_whole_file(path());
  io::write_file_atomically(path(), text.substr(0, text.size() - 1));
  MetricsWriter(path(), 100).write(at_step(26));
  EXPECT_EQ(lines().size(), 4u);
  // From the start: nothing is left.
  MetricsWriter(path(), 0);
  EXPECT_TRUE(lines().empty());
}

TEST_F(Metrics, IgnoresLinesThatAreNotMetrics) {
  io::write_file_atomically(path(), "not json\n[1]\n{\"epoch\":1}\n{\"step\":\"1\"}\n{\"step\":1}\n\n");
  MetricsWriter writer(path(), 5);
  EXPECT_EQ(lines().size(), 1u);
}

TEST_F(Metrics, FilesAreReplacedAtomically) {
  const std::string file = folder_ / "a";
  io::write_file_atomically(file, "one");
  io::write_file_atomically(file, std::string("two\0three", 9));
  EXPECT_EQ(io::read_whole_file(file), std::string("two\0three", 9));
  EXPECT_EQ(folder_.names().size(), 1u);
  EXPECT_EQ(io::sha256_file(file), io::sha256_hex("two\0three", 9));
  EXPECT_EQ(io::sha256_hex("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const auto said = [](const auto& f) {
    try {
      f();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  EXPECT_NE(said([&] { io::write_file_atomically(folder_ / "none/a", "x"); }).find("check that the folder exists"),
            std::string::npos);
  EXPECT_NE(said([&] { io::FileWriter("/dev/full").write("x", 1); }).find("free some space"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full")) << "a device is not replaced by a file";
  EXPECT_NE(said([&] { io::read_whole_file(folder_ / "none"); }).find("cannot read"), std::string::npos);
  EXPECT_NE(said([&] { MetricsWriter(folder_ / "none/m.jsonl", 0); }).find("cannot write"), std::string::npos);
}

// In a folder that others may write to, a temporary name may be a link to another file.
TEST_F(Metrics, TemporaryFilesAreNeverLinksToOthers) {
  const std::string file = folder_ / "a", other = folder_ / "other";
  const std::string process = std::to_string(getpid());
  io::write_file_atomically(other, "of another");
  std::filesystem::create_symlink(other, file + ".tmp" + process);
  io::write_file_atomically(file, "mine");
  std::filesystem::create_symlink(other, file + ".partial-" + process + "-0");
  {
    io::PartialFile partial(file);
    EXPECT_TRUE(partial.path().ends_with("-1"));
    std::filesystem::remove(partial.path());
    std::filesystem::create_symlink(other, partial.path());  // between the two calls
    EXPECT_THROW(io::FileHandle::create(partial.path(), file), Error);
  }
  EXPECT_EQ(io::read_whole_file(other), "of another");
  EXPECT_EQ(io::read_whole_file(file), "mine");
}

// A pipe in place of the lock does not block `pal runs`.
TEST_F(Metrics, ALockThatIsAPipeIsNotWaitedFor) {
  ASSERT_EQ(mkfifo((folder_ / "lock").c_str(), 0600), 0);
  EXPECT_FALSE(RunLock::held(folder_.path()));
}

}  // namespace
}  // namespace pal::record
