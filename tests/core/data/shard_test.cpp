// shard: written samples are read back; errors of damaged and cut files and of full disks name file and sample.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "core/data/dataset.h"
#include "core/data/shard_reader.h"
#include "core/data/shard_writer.h"
#include "core/data/verify.h"
#include "kernels/base/philox.h"
#include "tests/core/data/data_files.h"
#include "tests/core/data/image/jpeg_files.h"

namespace pal::data {
namespace {

constexpr int64_t kSamples = 11;
constexpr uint64_t kSeed = 3;

std::vector<uint8_t> image_of(int64_t sample) {
  Random random(kSeed, Purpose::noise, 0, static_cast<uint64_t>(sample));
  std::vector<uint8_t> bytes(4 * 5 * 3);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random.next_u32());
  return bytes;
}
int64_t label_of(int64_t sample) { return sample % 4 - 1; }
std::string id_of(int64_t sample) { return "image number " + std::to_string(sample); }

ShardSpec spec() {
  ShardSpec spec;
  spec.shape = {4, 5, 3};
  spec.classes = {"ant", "bee", "caméléon"};
  spec.parents = {3, 3, 4, 4, -1};
  spec.parent_names = {"insect", "animal"};
  spec.split = "train";
  return spec;
}

void write_shard(const std::string& path, int64_t begin = 0, int64_t end = kSamples,
                 const ShardSpec& shard_spec = spec()) {
  ShardWriter writer(path, shard_spec);
  for (int64_t i = begin; i < end; ++i) {
    const std::vector<uint8_t> bytes = image_of(i);
    writer.append({bytes.data(), bytes.size(), shard_spec.classes.empty() ? -1 : label_of(i), id_of(i)});
  }
  writer.finish();
  writer.publish();
}

// Everything that a reader of the file can see; throws what the reader throws.
std::string everything(const std::string& path) {
  const ShardReader shard(path);
  shard.check_ids();
  std::string all = std::to_string(shard.size()) + shard.split() + (shard.encoding() == Encoding::raw ? "raw" : "jpeg");
  for (const int32_t side : shard.shape()) (all += " ") += std::to_string(side);
  for (const int64_t label : shard.labels()) (all += " ") += std::to_string(label);
  for (const int64_t parent : shard.parents()) (all += " ") += std::to_string(parent);
  for (const std::string& name : shard.classes()) all += " " + name;
  for (const std::string& name : shard.parent_names()) all += " " + name;
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < shard.size(); ++i) {
    shard.read(i, bytes);
    all += shard.id(i) + std::string(bytes.begin(), bytes.end());
  }
  return all;
}

TEST(Shard, ReadsBackTheWrittenSamples) {
  const TestFolder folder;
  write_shard(folder / "a.h5");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.h5"});
  const std::shared_ptr<Dataset> data = Dataset::open(folder / "a.h5");
  ASSERT_EQ(data->size(), kSamples);
  EXPECT_EQ(data->encoding(), Encoding::raw);
  EXPECT_EQ(data->shape(), (std::vector<int32_t>{4, 5, 3}));
  EXPECT_EQ(data->classes(), spec().classes);
  std::vector<uint8_t> bytes;
  for (const int64_t i : {10, 3, 0, 7, 1, 2, 4, 5, 6, 8, 9}) {
    data->read(i, bytes);
    EXPECT_EQ(bytes, image_of(i));
    EXPECT_EQ(data->labels()[static_cast<size_t>(i)], label_of(i));
    EXPECT_EQ(data->id(i), id_of(i));
    const kernels::ImageView view = data->image(i, bytes);
    EXPECT_EQ(view.data, bytes.data());
    EXPECT_EQ(std::vector<int32_t>({view.height, view.width, view.channels}), data->shape());
  }
  const ShardReader shard(folder / "a.h5");
  EXPECT_EQ(shard.parents(), spec().parents);
  EXPECT_EQ(shard.parent_names(), spec().parent_names);
  EXPECT_EQ(shard.split(), "train");
}

TEST(Shard, WithoutClassesHasNoLabels) {
  const TestFolder folder;
  ShardSpec plain = spec();
  plain.classes = {};
  plain.parents = {};
  write_shard(folder / "a.h5", 0, kSamples, plain);
  EXPECT_TRUE(Dataset::open(folder / "a.h5")->labels().empty());
}

TEST(Shard, ClassesHaveNamesOfTheirOwn) {
  const TestFolder folder;
  ShardSpec twice = spec();
  twice.classes.back() = twice.classes.front();
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { ShardWriter(folder / "a.h5", twice); }),
                       "two classes have the same name: " + twice.classes.front()));
  EXPECT_TRUE(folder.names().empty());
}

TEST(Shard, EncodedImagesHaveTheirOwnSizes) {
  const TestFolder folder;
  ShardSpec jpeg;
  jpeg.encoding = Encoding::jpeg;
  {
    ShardWriter writer(folder / "a.h5", jpeg);
    for (size_t n : {5u, 9u << 20, 1u}) {  // the second is larger than the writer's buffer
      const std::vector<uint8_t> bytes(n, static_cast<uint8_t>(n));
      writer.append({bytes.data(), n, -1, "x"});
    }
    writer.finish();
    writer.publish();
  }
  const auto data = Dataset::open(folder / "a.h5");
  EXPECT_EQ(data->encoding(), Encoding::jpeg);
  std::vector<uint8_t> bytes;
  data->read(1, bytes);
  EXPECT_EQ(bytes, std::vector<uint8_t>(9u << 20, 0));
  data->read(2, bytes);
  EXPECT_EQ(bytes, std::vector<uint8_t>(1, 1));
}

// Bytes with a right checksum that are no JPEG file: written so, not damaged later.
TEST(Shard, VerifyLooksIntoJpegFiles) {
  const TestFolder folder;
  ShardSpec jpeg;
  jpeg.encoding = Encoding::jpeg;
  const std::vector<uint8_t> good = test_jpeg(test_picture(9, 7, 3, 1), 9, 7), cut(good.begin(), good.end() - 30);
  ShardWriter writer(folder / "a.h5", jpeg);
  writer.append({good.data(), good.size(), -1, "good.jpg"});
  writer.append({cut.data(), cut.size(), -1, "cut.jpg"});
  writer.finish();
  writer.publish();
  const VerifyReport report = verify_dataset({folder / "a.h5"}, 9, [](int64_t, int64_t) {});
  EXPECT_FALSE(report.good());
  EXPECT_EQ(report.bad_samples, 1);
  ASSERT_EQ(report.complaints.size(), 1u);
  EXPECT_TRUE(contains(report.complaints[0], "a.h5: sample 1 (cut.jpg): cut JPEG file")) << report.complaints[0];
}

TEST(Shard, SameInputSameBytes) {
  const TestFolder folder;
  write_shard(folder / "a.h5");
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // HDF5's time stamps have seconds
  write_shard(folder / "b.h5");
  EXPECT_TRUE(read_file(folder / "a.h5") == read_file(folder / "b.h5"));
}

TEST(Shard, AFlippedImageByteNamesFileAndSample) {
  const TestFolder folder;
  write_shard(folder / "a.h5");
  const std::string good = read_file(folder / "a.h5");
  for (int64_t sample = 0; sample < kSamples; ++sample) {
    const std::vector<uint8_t> image = image_of(sample);
    const size_t at = good.find(std::string(image.begin(), image.end()));
    ASSERT_NE(at, std::string::npos);
    std::string bad = good;
    bad[at + static_cast<size_t>(sample)] ^= 0x10;
    write_file(folder / "a.h5", bad);
    const auto data = Dataset::open(folder / "a.h5");  // the images are not read on opening
    std::vector<uint8_t> bytes;
    for (int64_t i = 0; i < kSamples; ++i) {
      const std::string error = error_of(Exit::data, [&] { data->read(i, bytes); });
      const std::string expected = "a.h5: sample " + std::to_string(i) + " (" + id_of(i) + ") does not match";
      EXPECT_TRUE(i == sample ? contains(error, expected) : error.empty()) << error;
    }
  }
}

TEST(Shard, EveryFlippedBitIsDetected) {
  const TestFolder folder;
  write_shard(folder / "a.h5");
  const std::string good = read_file(folder / "a.h5"), expected = everything(folder / "a.h5");
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed, Purpose::noise, 1);
  int refused = 0;
  for (size_t at = 0; at < good.size(); at += 1 + random.below(4)) {
    if (at > 4000 && at < 8192) continue;  // never written: HDF5's room for metadata
    poke(folder / "a.h5", at, static_cast<char>(good[at] ^ (1 << random.below(8))));
    std::string seen;
    const std::string error = error_of(Exit::data, [&] { seen = everything(folder / "a.h5"); });
    poke(folder / "a.h5", at, good[at]);
    if (error.empty()) {
      EXPECT_EQ(seen, expected) << "byte " << at;  // a byte without meaning
    } else {
      EXPECT_TRUE(contains(error, "a.h5")) << error;
      ++refused;
    }
  }
  EXPECT_GT(refused, 400);
}

TEST(Shard, ACutFileIsRefusedWhereverItIsCut) {
  const TestFolder folder;
  write_shard(folder / "a.h5");
  for (size_t size = std::filesystem::file_size(folder / "a.h5"); size-- > 0; size -= std::min<size_t>(size, 36)) {
    std::filesystem::resize_file(folder / "a.h5", size);
    const std::string error = error_of(Exit::data, [&] { Dataset::open(folder / "a.h5"); });
    EXPECT_TRUE(contains(error, "a.h5 is not a complete HDF5 file")) << size << ": " << error;
  }
}

TEST(Shard, AFileCutWhileOpenNamesTheSample) {
  const TestFolder folder;
  write_shard(folder / "a.h5");
  const auto data = Dataset::open(folder / "a.h5");
  std::filesystem::resize_file(folder / "a.h5", 8192 + 100);
  std::vector<uint8_t> bytes;
  data->read(0, bytes);
  EXPECT_EQ(bytes, image_of(0));
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { data->read(1, bytes); }), "a.h5: sample 1 is beyond the end"));
}

TEST(Shard, ThreadsReadAtTheSameTime) {
  const TestFolder folder;
  write_shard(folder / "a.h5");
  const auto data = Dataset::open(folder / "a.h5");
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      std::vector<uint8_t> bytes;
      for (int64_t i = 0; i < 2000; ++i) {
        const int64_t sample = (i * 7 + static_cast<int64_t>(t)) % kSamples;
        data->read(sample, bytes);
        if (bytes != image_of(sample)) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Shard, AnUnpublishedShardLeavesNothing) {
  const TestFolder folder;
  write_file(folder / "a.h5", "the old one");
  {
    ShardWriter writer(folder / "a.h5", spec());
    const std::vector<uint8_t> bytes = image_of(0);
    writer.append({bytes.data(), bytes.size(), 0, "x"});
    writer.finish();
    EXPECT_EQ(folder.names().size(), 2u);
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.h5"});
  EXPECT_EQ(read_file(folder / "a.h5"), "the old one");
}

TEST(Shard, BadSamplesAreRefused) {
  const TestFolder folder;
  ShardWriter writer(folder / "a.h5", spec());
  const std::vector<uint8_t> bytes = image_of(0);
  EXPECT_TRUE(contains(error_of(Exit::data,
                                [&] {
                                  writer.append({bytes.data(), bytes.size(), 3, "x"});
                                }),
                       "label 3 is out of range for x"));
  EXPECT_TRUE(contains(error_of(Exit::data,
                                [&] {
                                  writer.append({bytes.data(), bytes.size(), -2, "x"});
                                }),
                       "is out of range"));
  EXPECT_TRUE(contains(error_of(Exit::data,
                                [&] {
                                  writer.append({bytes.data(), 0, 0, "x"});
                                }),
                       "an image has no bytes: x"));
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { writer.finish(); }), "no samples"));
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { ShardWriter(folder / "no/a.h5", spec()); }),
                       "no/a.h5 cannot be written: No such file"));
}

// A write that fails at any byte gives one sentence, and no file remains in the folder.
TEST(Shard, AFullDiskLeavesNothing) {
  const TestFolder folder;
  write_shard(folder / "whole.h5");
  const auto whole = static_cast<rlim_t>(std::filesystem::file_size(folder / "whole.h5"));
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  std::vector<std::string> errors;
  for (rlim_t limit = 0; limit < whole; limit += 61) {
    struct rlimit low = before;
    low.rlim_cur = limit;
    setrlimit(RLIMIT_FSIZE, &low);
    errors.push_back(error_of(Exit::data, [&] { write_shard(folder / "a.h5"); }));
    setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_EQ(folder.names(), std::vector<std::string>{"whole.h5"}) << limit;
  }
  std::signal(SIGXFSZ, handler);
  for (const std::string& error : errors) EXPECT_TRUE(contains(error, "a.h5 cannot be ")) << error;
  EXPECT_TRUE(contains(errors.back(), "a.h5 cannot be written: File too large; make room or choose another place"))
      << errors.back();
}

}  // namespace
}  // namespace pal::data
