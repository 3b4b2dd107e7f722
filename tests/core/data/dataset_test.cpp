// dataset: several shards are one list, however they are named and divided.
#include "core/data/dataset.h"

#include <gtest/gtest.h>

#include "core/data/shard_writer.h"
#include "tests/core/data/data_files.h"

namespace pal::data {
namespace {

struct Options {
  std::vector<std::string> classes = {"even", "odd"};
  std::string split = "train";
  int32_t width = 2;
};

void write_range(const std::string& path, int64_t begin, int64_t end, const Options& options = {}) {
  ShardSpec spec;
  spec.shape = {1, options.width, 1};
  spec.classes = options.classes;
  spec.split = options.split;
  ShardWriter writer(path, spec);
  for (int64_t i = begin; i < end; ++i) {
    const std::vector<uint8_t> bytes(static_cast<size_t>(options.width), static_cast<uint8_t>(i));
    writer.append({bytes.data(), bytes.size(), options.classes.empty() ? -1 : i % 2, "s" + std::to_string(i)});
  }
  writer.finish();
  writer.publish();
}

void expect_ten(const std::string& pattern) {
  const auto data = Dataset::open(pattern);
  ASSERT_EQ(data->size(), 10) << pattern;
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < 10; ++i) {
    data->read(i, bytes);
    EXPECT_EQ(bytes[0], i);
    EXPECT_EQ(data->labels()[static_cast<size_t>(i)], i % 2);
    EXPECT_EQ(data->id(i), "s" + std::to_string(i));
  }
}

TEST(Dataset, FileFolderAndGlob) {
  const TestFolder folder;
  std::filesystem::create_directory(folder / "set");
  write_range(folder / "set/x-00000-of-00003.h5", 0, 3);
  write_range(folder / "set/x-00002-of-00003.h5", 4, 10);
  write_range(folder / "set/x-00001-of-00003.h5", 3, 4);
  write_file(folder / "set/notes.txt", "not a shard");
  write_file(folder / "set/x-00001-of-00003.h5.partial-17-0", "of a killed import");
  expect_ten(folder / "set");
  expect_ten(folder / "set/x-*.h5");
  expect_ten(folder / "set/x-0000?-of-00003.h5");
  EXPECT_EQ(Dataset::open(folder / "set/x-00002-of-00003.h5")->size(), 6);
}

TEST(Dataset, TheFingerprintIsOfTheDataNotOfTheSharding) {
  const TestFolder folder;
  write_range(folder / "whole.h5", 0, 10);
  write_range(folder / "part-0.h5", 0, 4);
  write_range(folder / "part-1.h5", 4, 10);
  write_range(folder / "other.h5", 1, 11);
  Options labels;
  labels.classes = {};
  write_range(folder / "unlabeled.h5", 0, 10, labels);
  const uint64_t whole = Dataset::open(folder / "whole.h5")->fingerprint();
  EXPECT_EQ(Dataset::open(folder / "part-?.h5")->fingerprint(), whole);
  EXPECT_NE(Dataset::open(folder / "part-1.h5")->fingerprint(), whole);
  EXPECT_NE(Dataset::open(folder / "other.h5")->fingerprint(), whole);
  EXPECT_NE(Dataset::open(folder / "unlabeled.h5")->fingerprint(), whole);
}

TEST(Dataset, ShardsMustBelongTogether) {
  const TestFolder folder;
  const auto error = [&] { return error_of(Exit::data, [&] { Dataset::open(folder.path().string()); }); };
  write_range(folder / "a.h5", 0, 5);
  write_range(folder / "b.h5", 5, 10, {{"odd", "even"}});
  EXPECT_TRUE(contains(error(), "different classes")) << error();
  EXPECT_TRUE(contains(error(), "a.h5 and ") && contains(error(), "b.h5")) << error();
  write_range(folder / "b.h5", 5, 10, {.split = "test"});
  EXPECT_TRUE(contains(error(), "different splits (train, test)")) << error();
  write_range(folder / "b.h5", 5, 10, {.width = 3});  // sizes may differ
  EXPECT_EQ(Dataset::open(folder.path().string())->shape(), (std::vector<int32_t>{1, 0, 1}));
}

TEST(Dataset, AMissingOrForeignShardIsRefused) {
  const TestFolder folder;
  const auto error = [&] { return error_of(Exit::data, [&] { Dataset::open(folder / "x-*.h5"); }); };
  write_range(folder / "x-00000-of-00003.h5", 0, 3);
  write_range(folder / "x-00002-of-00003.h5", 4, 10);
  EXPECT_TRUE(contains(error(), "x-*.h5 has 2 of 3")) << error();
  write_range(folder / "x-00001-of-00003.h5", 3, 4);
  EXPECT_EQ(error(), "");
  write_range(folder / "x-00000-of-00001.h5", 0, 10);
  EXPECT_TRUE(contains(error(), "holds shards of two imports")) << error();
}

TEST(Dataset, MissingFilesAreNamed) {
  const TestFolder folder;
  const auto error = [&](const std::string& name) {
    return error_of(Exit::data, [&] { Dataset::open(folder / name); });
  };
  EXPECT_TRUE(contains(error("none.h5"), "this data set does not exist")) << error("none.h5");
  EXPECT_TRUE(contains(error("no*.h5"), "this data set does not exist")) << error("no*.h5");
  EXPECT_TRUE(contains(error(""), "the folder holds no *.h5 files")) << error("");
}

}  // namespace
}  // namespace pal::data
