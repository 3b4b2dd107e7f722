// node_cache: copies equal their sources, are made once, are checked when they are reused, and are never partial.
#include "core/data/node_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/data/dataset.h"
#include "core/data/shard_writer.h"
#include "tests/core/comm/thread_comm.h"
#include "tests/core/data/data_files.h"

namespace pal::data {
namespace {

namespace fs = std::filesystem;

void write_shards(const TestFolder& folder, int count) {
  for (int k = 0; k < count; ++k) {
    char name[40];
    std::snprintf(name, sizeof(name), "x-%05d-of-%05d.h5", k, count);
    ShardSpec spec;
    spec.shape = {4, 4, 1};
    spec.classes = {"a"};
    ShardWriter writer(folder / name, spec);
    for (int i = 0; i < 5; ++i) {
      const std::vector<uint8_t> image(16, static_cast<uint8_t>(16 * k + i));
      writer.append({image.data(), image.size(), 0, "id"});
    }
    writer.finish();
    writer.publish();
  }
}

TEST(NodeCache, CopiesOnceAndReadsTheSame) {
  const TestFolder source, local;
  write_shards(source, 3);
  const auto comm = comm::make_local_comm();
  const NodeCacheReport first = cache_on_node(source.path().string(), local.path().string(), *comm);
  EXPECT_EQ(first.files, 3);
  EXPECT_EQ(first.copied, 3);
  EXPECT_EQ(Dataset::open(first.data)->fingerprint(), Dataset::open(source.path().string())->fingerprint());
  for (const std::string& name : source.names())
    EXPECT_EQ(read_file(source / name), read_file(first.data + "/" + name));
  const NodeCacheReport second = cache_on_node(source.path().string(), local.path().string(), *comm);
  EXPECT_EQ(second.copied, 0);
  EXPECT_EQ(second.data, first.data);
  for (const auto& entry : fs::directory_iterator(first.data))
    EXPECT_FALSE(contains(entry.path().string(), "partial")) << entry.path();
}

TEST(NodeCache, DamagedCutAndUnfinishedCopiesAreMadeAgain) {
  const TestFolder source, local;
  write_shards(source, 4);
  const auto comm = comm::make_local_comm();
  const std::string data = cache_on_node(source.path().string(), local.path().string(), *comm).data;
  const auto copy = [&](int k) { return data + "/x-0000" + std::to_string(k) + "-of-00004.h5"; };
  poke(copy(0), read_file(copy(0)).size() / 2, 'x');
  fs::resize_file(copy(1), fs::file_size(copy(1)) - 1);
  fs::remove(copy(2) + ".crc32c");
  write_file(copy(3) + ".partial-1-0", "a process that was killed left this");
  EXPECT_EQ(cache_on_node(source.path().string(), local.path().string(), *comm).copied, 3);
  EXPECT_EQ(Dataset::open(data)->fingerprint(), Dataset::open(source.path().string())->fingerprint());
  for (int k = 0; k < 4; ++k) EXPECT_EQ(read_file(copy(k)), read_file(source / fs::path(copy(k)).filename().string()));
}

TEST(NodeCache, OtherSourcesAreOtherCopies) {
  const TestFolder source, local;
  write_shards(source, 1);
  const auto comm = comm::make_local_comm();
  const std::string before = cache_on_node(source.path().string(), local.path().string(), *comm).data;
  fs::last_write_time(source / "x-00000-of-00001.h5", fs::file_time_type::clock::now() + std::chrono::seconds(10));
  EXPECT_NE(cache_on_node(source.path().string(), local.path().string(), *comm).data, before);
}

TEST(NodeCache, OneRankCopiesAndAllSeeWholeFiles) {
  const TestFolder source, local;
  write_shards(source, 5);
  const uint64_t want = Dataset::open(source.path().string())->fingerprint();
  std::vector<int64_t> copied(3);
  comm::run_ranks(3, [&](comm::Comm& comm) {
    const NodeCacheReport report = cache_on_node(source.path().string(), local.path().string(), comm);
    copied[comm.rank()] = report.copied;
    EXPECT_EQ(Dataset::open(report.data)->fingerprint(), want);
  });
  EXPECT_EQ(copied, (std::vector<int64_t>{5, 0, 0}));
}

TEST(NodeCache, Refusals) {
  const TestFolder source, local;
  const auto comm = comm::make_local_comm();
  write_shards(source, 2);
  fs::remove(source / "x-00001-of-00002.h5");
  EXPECT_TRUE(
      contains(error_of(Exit::data, [&] { cache_on_node(source.path().string(), local.path().string(), *comm); }),
               "shards are missing"));
  fs::create_directories(source / "a");
  fs::create_directories(source / "b");
  write_file(source / "a/s.h5", "1");
  write_file(source / "b/s.h5", "2");
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { cache_on_node(source / "?/s.h5", local.path().string(), *comm); }),
                       "same name"));
}

}  // namespace
}  // namespace pal::data
