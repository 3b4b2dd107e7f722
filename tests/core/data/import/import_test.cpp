// import: IDX and CIFAR files that the test writes: complete, cut and wrong ones.
#include "core/data/import/import.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <fstream>

#include "core/data/dataset.h"
#include "core/data/shard_reader.h"
#include "kernels/base/philox.h"
#include "tests/core/data/data_files.h"

namespace pal::data {
namespace {

namespace fs = std::filesystem;

std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string random_text(size_t bytes, uint64_t stream) {
  Random random(5, Purpose::noise, stream);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random.next_u32());
  return text;
}

std::string gzipped(const std::string& bytes, const std::string& path) {
  gzFile out = gzopen(path.c_str(), "wb");
  gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(out);
  return read_file(path);
}

// The four IDX files of 20 training and 7 test images, 5 × 4.
struct IdxSource {
  static constexpr size_t kImage = 20;
  std::string train_pixels = random_text(20 * kImage, 1), test_pixels = random_text(7 * kImage, 2);
  std::string train_labels, test_labels;

  explicit IdxSource(const fs::path& folder, const std::string& ending = ".gz") : folder_(folder), ending_(ending) {
    for (int i = 0; i < 20; ++i) train_labels += static_cast<char>(i % 10);
    for (int i = 0; i < 7; ++i) test_labels += static_cast<char>(9 - i);
    fs::create_directories(folder);
    write("train-images-idx3-ubyte", big_endian(0x803) + big_endian(20) + big_endian(5) + big_endian(4) + train_pixels);
    write("train-labels-idx1-ubyte", big_endian(0x801) + big_endian(20) + train_labels);
    write("t10k-images-idx3-ubyte", big_endian(0x803) + big_endian(7) + big_endian(5) + big_endian(4) + test_pixels);
    write("t10k-labels-idx1-ubyte", big_endian(0x801) + big_endian(7) + test_labels);
  }
  std::string file(const std::string& name) const { return (folder_ / (name + ending_)).string(); }
  void write(const std::string& name, const std::string& bytes) const {
    if (ending_ == ".gz")
      gzipped(bytes, file(name));
    else
      write_file(file(name), bytes);
  }

 private:
  fs::path folder_;
  std::string ending_;
};

class Import : public ::testing::Test {
 protected:
  ImportOptions options(const std::string& source = "source") const {
    ImportOptions o;
    o.source = folder_ / source;
    o.out = folder_ / "out/x.h5";
    return o;
  }
  std::vector<std::string> made() const { return folder_.names("out"); }
  // The error of an import that must leave nothing behind.
  std::string idx_error(Exit code = Exit::data) const {
    const std::string error = error_of(code, [&] { import_idx(options()); });
    EXPECT_EQ(made(), std::vector<std::string>{}) << error;
    return error;
  }
  void SetUp() override { fs::create_directory(folder_ / "out"); }

  TestFolder folder_;
};

std::string bytes_of(const Dataset& data, int64_t sample) {
  std::vector<uint8_t> bytes;
  data.read(sample, bytes);
  return {bytes.begin(), bytes.end()};
}

TEST_F(Import, IdxPlainAndGzipMakeTheSameFiles) {
  const IdxSource source(folder_ / "source");
  const IdxSource plain(folder_ / "plain", "");
  std::vector<int64_t> seen;
  ImportOptions o = options();
  o.progress = [&](int64_t done, int64_t total) {
    seen.push_back(done);
    EXPECT_EQ(total, 27);
  };
  const ImportReport report = import_idx(o);
  EXPECT_EQ(seen.back(), 27);
  EXPECT_EQ(made(), (std::vector<std::string>{"x-test.h5", "x.h5"}));
  ASSERT_EQ(report.splits.size(), 2u);
  EXPECT_EQ(report.splits[0].files, std::vector<std::string>{folder_ / "out/x.h5"});
  EXPECT_EQ(report.splits[0].samples, 20);
  EXPECT_EQ(report.splits[1].samples, 7);
  EXPECT_EQ(report.splits[1].image_bytes, 140);

  const auto train = Dataset::open(folder_ / "out/x.h5"), test = Dataset::open(folder_ / "out/x-test.h5");
  EXPECT_EQ(train->shape(), (std::vector<int32_t>{5, 4, 1}));
  EXPECT_EQ(train->classes(), (std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}));
  ASSERT_EQ(train->size(), 20);
  ASSERT_EQ(test->size(), 7);
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(bytes_of(*train, i), source.train_pixels.substr(static_cast<size_t>(i) * 20, 20));
    EXPECT_EQ(train->labels()[static_cast<size_t>(i)], i % 10);
  }
  for (int64_t i = 0; i < 7; ++i)
    EXPECT_EQ(bytes_of(*test, i), source.test_pixels.substr(static_cast<size_t>(i) * 20, 20));
  EXPECT_EQ(test->labels()[6], 3);
  EXPECT_EQ(train->id(3), "train-3");

  const std::string first = read_file(folder_ / "out/x.h5"), first_test = read_file(folder_ / "out/x-test.h5");
  o = options("plain");
  o.overwrite = Overwrite::replace;
  import_idx(o);
  EXPECT_TRUE(read_file(folder_ / "out/x.h5") == first);
  EXPECT_TRUE(read_file(folder_ / "out/x-test.h5") == first_test);
}

TEST_F(Import, IdxClassNames) {
  const IdxSource source(folder_ / "source");
  const IdxSource fashion(folder_ / "Fashion-MNIST");
  EXPECT_EQ(import_idx(options("Fashion-MNIST")).classes[9], "Ankle boot");
  ImportOptions o = options();
  o.overwrite = Overwrite::replace;
  o.classes = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
  EXPECT_EQ(import_idx(o).classes, o.classes);
  EXPECT_EQ(Dataset::open(o.out)->classes(), o.classes);
  o.classes.pop_back();
  const std::string error = error_of(Exit::data, [&] { import_idx(o); });
  EXPECT_TRUE(contains(error, "train-labels-idx1-ubyte.gz: label 9 of sample 9 is out of range; there are 9")) << error;
}

TEST_F(Import, SeveralShardsHoldTheSameSamples) {
  const IdxSource source(folder_ / "source");
  import_idx(options());
  const uint64_t whole = Dataset::open(folder_ / "out/x.h5")->fingerprint();
  ImportOptions o = options();
  o.out = folder_ / "out/y.h5";
  o.shards = 3;
  const ImportReport report = import_idx(o);
  ASSERT_EQ(report.splits[0].files.size(), 3u);
  EXPECT_EQ(report.splits[0].files[2], folder_ / "out/y-00002-of-00003.h5");
  EXPECT_EQ(report.splits[1].files[0], folder_ / "out/y-test-00000-of-00003.h5");
  EXPECT_EQ(Dataset::open(folder_ / "out/y-0*.h5")->fingerprint(), whole);
  EXPECT_EQ(ShardReader(report.splits[0].files[0]).size(), 6);
  o.shards = 8;
  o.out = folder_ / "out/z.h5";
  EXPECT_TRUE(contains(error_of(Exit::usage, [&] { import_idx(o); }),
                       "8 shards are more than there are test samples; give at most 7"));
}

TEST_F(Import, CutGzipIsRefusedWhereverItIsCut) {
  const IdxSource source(folder_ / "source");
  for (const char* name : {"train-images-idx3-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    const std::string whole = read_file(source.file(name));
    for (size_t size = 0; size < whole.size(); size += size + 40 < whole.size() ? 23 : 1) {
      write_file(source.file(name), whole.substr(0, size));
      const std::string error = idx_error();
      EXPECT_TRUE(contains(error, std::string(name) + ".gz")) << size << ": " << error;
    }
    write_file(source.file(name), whole);
  }
  import_idx(options());
}

TEST_F(Import, DamagedGzipIsRefused) {
  const IdxSource source(folder_ / "source");
  const std::string whole = read_file(source.file("train-images-idx3-ubyte"));
  poke(source.file("train-images-idx3-ubyte"), whole.size() - 6,
       static_cast<char>(whole[whole.size() - 6] ^ 1));  // gzip's own CRC
  EXPECT_TRUE(contains(idx_error(), "is cut or damaged: ")) << idx_error();
}

TEST_F(Import, WrongIdxFilesAreRefused) {
  const std::string image = big_endian(5) + big_endian(4);
  const std::vector<std::array<std::string, 3>> cases = {
      {"train-images-idx3-ubyte", big_endian(0x801) + big_endian(20) + image,
       "is not the expected IDX file: its magic number is 2049"},
      {"train-labels-idx1-ubyte", big_endian(0x801) + big_endian(19) + std::string(19, '\1'),
       "have different numbers of samples: 19 and 20"},
      {"train-labels-idx1-ubyte", big_endian(0x801) + big_endian(20) + std::string(21, '\1'),
       "has more bytes than its header announces"},
      {"train-labels-idx1-ubyte", big_endian(0x801) + big_endian(20) + std::string(19, '\1'), "is cut off"},
      {"train-images-idx3-ubyte", big_endian(0x803) + big_endian(20) + image + std::string(399, 'x'), "is cut off"},
      {"train-images-idx3-ubyte", big_endian(0x803) + big_endian(20) + image + std::string(401, 'x'),
       "has more bytes than its header announces"},
      {"t10k-images-idx3-ubyte", big_endian(0x803) + big_endian(7) + big_endian(0) + big_endian(4),
       "impossible size 0"},
      {"t10k-images-idx3-ubyte", big_endian(0x803) + big_endian(7) + big_endian(1 << 30) + big_endian(4),
       "impossible size 1073741824"},
      {"t10k-labels-idx1-ubyte", "", "is cut off"},
  };
  for (const std::string ending : {"", ".gz"}) {
    for (const auto& [name, bytes, expected] : cases) {
      fs::remove_all(folder_ / "source");
      const IdxSource source(folder_ / "source", ending);
      source.write(name, bytes);
      const std::string error = idx_error();
      EXPECT_TRUE(contains(error, expected) && contains(error, name)) << expected << ": " << error;
    }
    fs::remove_all(folder_ / "source");
    const IdxSource source(folder_ / "source", ending);
    fs::remove(source.file("t10k-labels-idx1-ubyte"));
    EXPECT_TRUE(contains(idx_error(), "does not hold: t10k-labels-idx1-ubyte[.gz]")) << idx_error();
  }
  fs::remove_all(folder_ / "source");
  EXPECT_TRUE(contains(idx_error(), "this folder does not exist")) << idx_error();
}

TEST_F(Import, OverwritesOnlyWhenAsked) {
  const IdxSource source(folder_ / "source");
  write_file(folder_ / "out/x-test.h5", "precious");
  const std::string error = error_of(Exit::usage, [&] { import_idx(options()); });
  EXPECT_TRUE(contains(error, "the output exists already: ") && contains(error, "x-test.h5; give --force")) << error;
  EXPECT_EQ(made(), std::vector<std::string>{"x-test.h5"});
  EXPECT_EQ(read_file(folder_ / "out/x-test.h5"), "precious");
  ImportOptions o = options();
  o.overwrite = Overwrite::replace;
  import_idx(o);
  EXPECT_EQ(Dataset::open(folder_ / "out/x-test.h5")->size(), 7);
  // A failure while replacing keeps the old files.
  const std::string old = read_file(folder_ / "out/x.h5");
  source.write("t10k-images-idx3-ubyte", big_endian(0x803) + big_endian(7) + big_endian(5) + big_endian(4) + "short");
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { import_idx(o); }), "t10k-images"));
  EXPECT_EQ(made(), (std::vector<std::string>{"x-test.h5", "x.h5"}));
  EXPECT_TRUE(read_file(folder_ / "out/x.h5") == old);
}

TEST_F(Import, BadOutputsAreRefused) {
  const IdxSource source(folder_ / "source");
  ImportOptions o = options();
  o.out = folder_ / "out/x.hdf";
  EXPECT_TRUE(contains(error_of(Exit::usage, [&] { import_idx(o); }), "must end with .h5"));
  std::ofstream(folder_ / "file") << "x";
  o.out = folder_ / "file/x.h5";
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { import_idx(o); }), "file cannot be made: Not a directory; check"));
  o.out = folder_ / "out/d.h5";
  fs::create_directory(o.out);
  EXPECT_TRUE(contains(error_of(Exit::usage, [&] { import_idx(o); }), "the output is a folder"));
}

TEST_F(Import, TheFolderOfTheOutputIsMade) {
  const IdxSource source(folder_ / "source");
  ImportOptions o = options();
  o.out = folder_ / "new/deep/x.h5";
  import_idx(o);
  EXPECT_TRUE(fs::exists(o.out));
}

TEST_F(Import, AStopFromOutsideLeavesNothing) {
  const IdxSource source(folder_ / "source");
  ImportOptions o = options();
  o.progress = [](int64_t, int64_t) { throw Error(Exit::usage, "stop"); };
  EXPECT_EQ(error_of(Exit::usage, [&] { import_idx(o); }), "stop");
  EXPECT_EQ(made(), std::vector<std::string>{});
}

// n records of the given label bytes; pixel p of plane c is a function of both, so that a wrong order shows.
std::string cifar_records(const std::vector<std::string>& labels) {
  std::string records;
  for (size_t i = 0; i < labels.size(); ++i) {
    records += labels[i];
    for (size_t c = 0; c < 3; ++c) {
      for (size_t p = 0; p < 1024; ++p) records += static_cast<char>(i * 31 + c * 101 + p * 7 + p / 32);
    }
  }
  return records;
}
std::string cifar_image(size_t i) {
  std::string image;
  for (size_t p = 0; p < 1024; ++p) {
    for (size_t c = 0; c < 3; ++c) image += static_cast<char>(i * 31 + c * 101 + p * 7 + p / 32);
  }
  return image;
}

TEST_F(Import, Cifar10) {
  fs::create_directories(folder_ / "source/cifar-10-batches-bin");
  const auto file = [&](const std::string& name) { return folder_ / ("source/cifar-10-batches-bin/" + name); };
  std::string names;
  for (int c = 0; c < 10; ++c) names += "class " + std::to_string(c) + "\n";
  write_file(file("batches.meta.txt"), names + "\n");  // the official file ends with an empty line
  for (int b = 1; b <= 5; ++b) {
    write_file(file("data_batch_" + std::to_string(b) + ".bin"),
               cifar_records({std::string(1, char(b)), std::string(1, char(b + 1))}));
  }
  write_file(file("test_batch.bin"), cifar_records({std::string(1, '\0'), "\x9"}));
  EXPECT_EQ(import_cifar10(options()).splits[0].samples, 10);
  const auto train = Dataset::open(folder_ / "out/x.h5"), test = Dataset::open(folder_ / "out/x-test.h5");
  EXPECT_EQ(train->labels(), (std::vector<int64_t>{1, 2, 2, 3, 3, 4, 4, 5, 5, 6}));
  EXPECT_EQ(test->labels(), (std::vector<int64_t>{0, 9}));
  EXPECT_EQ(train->shape(), (std::vector<int32_t>{32, 32, 3}));
  EXPECT_EQ(train->classes()[7], "class 7");
  EXPECT_EQ(train->id(5), "data_batch_3-1");
  EXPECT_TRUE(bytes_of(*train, 4) == cifar_image(0));
  EXPECT_TRUE(bytes_of(*train, 5) == cifar_image(1));

  ImportOptions o = options("source/cifar-10-batches-bin");  // the folder itself may be given, too
  o.out = folder_ / "out/y.h5";
  import_cifar10(o);
  EXPECT_TRUE(read_file(folder_ / "out/y.h5") == read_file(folder_ / "out/x.h5"));

  o.overwrite = Overwrite::replace;
  const auto error = [&] { return error_of(Exit::data, [&] { import_cifar10(o); }); };
  write_file(file("data_batch_2.bin"), cifar_records({"\x3", "\xA"}));
  EXPECT_TRUE(contains(error(), "label 10 is out of range for data_batch_2-1; there are 10 classes")) << error();
  fs::resize_file(file("data_batch_2.bin"), 3073 + 3072);
  EXPECT_TRUE(contains(error(), "data_batch_2.bin is cut off at 6145 bytes; its records have 3073 bytes")) << error();
  fs::remove(file("data_batch_2.bin"));
  EXPECT_TRUE(contains(error(), "data_batch_2.bin: No such file")) << error();
  fs::remove(file("batches.meta.txt"));
  EXPECT_TRUE(contains(error(), "batches.meta.txt")) << error();
  ASSERT_EQ(mkfifo(file("batches.meta.txt").c_str(), 0600), 0);
  EXPECT_TRUE(contains(error(), "it is a pipe")) << error();
  fs::remove(file("data_batch_1.bin"));
  EXPECT_TRUE(contains(error(), "does not hold: data_batch_1.bin")) << error();
  EXPECT_EQ(made(), (std::vector<std::string>{"x-test.h5", "x.h5", "y-test.h5", "y.h5"}));
}

TEST_F(Import, Cifar100WritesTheCoarseClassesAsParents) {
  fs::create_directories(folder_ / "source");
  write_file(folder_ / "source/fine_label_names.txt", "apple\nbear\ncod\neel\n");
  write_file(folder_ / "source/coarse_label_names.txt", "fish\nfruit\nmammal\n");
  const auto record = [](char coarse, char fine) { return std::string{coarse, fine}; };
  write_file(folder_ / "source/train.bin", cifar_records({record(1, 0), record(0, 2), record(0, 3)}));
  write_file(folder_ / "source/test.bin", cifar_records({record(2, 1), record(0, 2)}));
  EXPECT_EQ(import_cifar100(options()).splits[1].samples, 2);
  const ShardReader train(folder_ / "out/x.h5");
  EXPECT_EQ(train.labels(), (std::vector<int64_t>{0, 2, 3}));
  EXPECT_EQ(train.classes(), (std::vector<std::string>{"apple", "bear", "cod", "eel"}));
  EXPECT_EQ(train.parents(), (std::vector<int64_t>{5, 6, 4, 4, -1, -1, -1}));
  EXPECT_EQ(train.parent_names(), (std::vector<std::string>{"fish", "fruit", "mammal"}));
  EXPECT_TRUE(bytes_of(*Dataset::open(folder_ / "out/x.h5"), 2) == cifar_image(2));

  ImportOptions o = options();
  o.overwrite = Overwrite::replace;
  const auto error = [&] { return error_of(Exit::data, [&] { import_cifar100(o); }); };
  write_file(folder_ / "source/test.bin", cifar_records({record(1, 2)}));
  EXPECT_TRUE(contains(error(), "test.bin: record 0 puts class 2 under a second coarse class")) << error();
  write_file(folder_ / "source/test.bin", cifar_records({record(3, 2)}));
  EXPECT_TRUE(contains(error(), "coarse label 3, which is out of range")) << error();
  write_file(folder_ / "source/test.bin", cifar_records({record(0, 4)}));
  EXPECT_TRUE(contains(error(), "label 4, which is out of range")) << error();
}

}  // namespace
}  // namespace pal::data
