// import_images: image files of every kind of source give the same bytes for any number of threads, also after a kill.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "core/data/dataset.h"
#include "core/data/image/jpeg.h"
#include "core/data/image/png.h"
#include "core/data/import/import.h"
#include "core/data/import/ordered_workers.h"
#include "core/data/shard_reader.h"
#include "core/data/verify.h"
#include "kernels/base/philox.h"
#include "tests/core/data/data_files.h"

namespace pal::data {
namespace {

namespace fs = std::filesystem;

std::string noise_jpeg(uint64_t seed, int32_t side = 24) {
  Random random(seed, Purpose::noise, 3);
  std::vector<uint8_t> pixels(size_t(side) * size_t(side) * 3);
  for (uint8_t& p : pixels) p = static_cast<uint8_t>(random.next_u32());
  const std::vector<uint8_t> file = encode_jpeg(pixels.data(), side, side, 3, 90, Chroma::full);
  return {file.begin(), file.end()};
}

class ImportImages : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    write_file(folder_ / name, bytes);
  }
  ImportOptions options(const std::string& source, const std::string& out = "out/x.h5") const {
    ImportOptions o;
    o.source = folder_ / source;
    o.out = folder_ / out;
    o.threads = 2;
    return o;
  }
  std::vector<std::string> made() const { return folder_.names("out"); }
  static std::string sample(const Dataset& data, int64_t i) {
    std::vector<uint8_t> bytes;
    data.read(i, bytes);
    return {bytes.begin(), bytes.end()};
  }
  void SetUp() override { fs::create_directory(folder_ / "out"); }
  // In memory: a kill does not lose written pages, synced or not, and syncing is slow on a busy machine.
  TestFolder folder_{::access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path()};
};

TEST(OrderedWorkers, ResultsComeInOrderAndErrorsInTheirTurn) {
  for (const int threads : {1, 3, 8}) {
    std::vector<int64_t> seen;
    const auto worker = [] {
      return [](int64_t i) {
        if (i == 57) throw Error(Exit::data, "item 57");
        std::this_thread::sleep_for(std::chrono::microseconds(i * 37 % 200));
        return i * i;
      };
    };
    const std::string error = error_of(Exit::data, [&] {
      ordered_for<int64_t>(threads, 3, 100, 5, worker, [&](int64_t i, int64_t square) {
        EXPECT_EQ(square, i * i);
        seen.push_back(i);
      });
    });
    EXPECT_EQ(error, "item 57");
    ASSERT_EQ(seen.size(), 54u);
    for (size_t k = 0; k < seen.size(); ++k) EXPECT_EQ(seen[k], static_cast<int64_t>(k) + 3);
    EXPECT_EQ(error_of(Exit::usage,
                       [&] {  // the consumer throws: the workers end
                         ordered_for<int64_t>(threads, 0, 50, 5, worker,
                                              [&](int64_t, int64_t) { throw Error(Exit::usage, "enough"); });
                       }),
              "enough");
  }
}

TEST_F(ImportImages, AFolderOfClasses) {
  write("src/b/2.jpg", noise_jpeg(1));
  write("src/b/1.JPEG", noise_jpeg(2));
  write("src/a-c/deep/er/z.jpg", noise_jpeg(3));
  write("src/a/cut.jpg", noise_jpeg(4).substr(0, 300));
  write("src/a/y.jpg", noise_jpeg(5));
  write("src/a/notes.txt", "x");
  write("src/stray.jpg", noise_jpeg(6));
  const ImportReport report = import_folder(options("src"));
  EXPECT_EQ(made(), (std::vector<std::string>{"x-quarantine.csv", "x.h5"}));
  const auto data = Dataset::open(folder_ / "out/x.h5");
  ASSERT_EQ(data->size(), 5);
  EXPECT_EQ(data->classes(), (std::vector<std::string>{"a", "a-c", "b"}));
  EXPECT_EQ(data->labels(), (std::vector<int64_t>{-1, 0, 1, 2, 2}));
  EXPECT_EQ(data->id(2), "a-c/deep/er/z.jpg");
  EXPECT_EQ(sample(*data, 1), noise_jpeg(5));
  EXPECT_EQ(sample(*data, 3), noise_jpeg(2));
  EXPECT_EQ(report.left_out, 1);
  EXPECT_EQ(report.ignored.at("*.txt"), 1);
  EXPECT_EQ(report.notes, std::vector<std::string>{"images outside of class folders: 1; they have no label"});
  EXPECT_TRUE(contains(read_file(folder_ / "out/x-quarantine.csv"), "\na/cut.jpg,cut JPEG file"));
  EXPECT_TRUE(contains(error_of(Exit::usage, [&] { import_folder(options("src")); }), "the output exists already"));
  EXPECT_EQ(made().size(), 2u);
  ImportOptions deep = options("src");
  deep.out = folder_ / "new/deep/x.h5";  // its folder is made
  import_folder(deep);
  EXPECT_EQ(Dataset::open(deep.out)->size(), 5);
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { import_folder(options("out")); }), "has no folders with images"));
}

TEST_F(ImportImages, TrainAndTestFoldersAreTwoSplits) {
  for (const char* name : {"train/a/1.jpg", "train/b/2.jpg", "val/b/3.jpg"})
    write(std::string("src/") + name, noise_jpeg(1));
  const ImportReport report = import_folder(options("src"));
  EXPECT_EQ(made(), (std::vector<std::string>{"x-test.h5", "x.h5"}));
  const auto test = Dataset::open(folder_ / "out/x-test.h5");
  EXPECT_EQ(test->classes(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(test->labels(), std::vector<int64_t>{1});
  EXPECT_EQ(ShardReader(folder_ / "out/x-test.h5").split(), "test");
  EXPECT_EQ(report.splits[0].samples, 2);
}

TEST_F(ImportImages, FlatFoldersListsAndManifests) {
  write("src/b.jpg", noise_jpeg(1));
  write("src/sub/a.jpg", noise_jpeg(2));
  write("src/c.jpg", noise_jpeg(3));
  import_flat(options("src"));
  auto data = Dataset::open(folder_ / "out/x.h5");
  ASSERT_EQ(data->size(), 3);
  EXPECT_TRUE(data->labels().empty());
  EXPECT_EQ(data->id(2), "sub/a.jpg");

  write("list.txt", "src/sub/a.jpg\nsrc/b.jpg\nsrc/gone.jpg\n");
  const ImportReport listed = import_flat(options("list.txt", "out/list.h5"));
  data = Dataset::open(folder_ / "out/list.h5");
  ASSERT_EQ(data->size(), 2);
  EXPECT_EQ(sample(*data, 0), noise_jpeg(2));
  ASSERT_EQ(listed.odd.size(), 1u);
  EXPECT_EQ(listed.odd[0].kind, "file that cannot be read");

  write("m.csv", "path,label\nsrc/c.jpg,10\nsrc/b.jpg,2\nsrc/sub/a.jpg,\n");
  import_csv(options("m.csv", "out/m.h5"));
  data = Dataset::open(folder_ / "out/m.h5");
  EXPECT_EQ(data->labels(), (std::vector<int64_t>{10, 2, -1}));
  EXPECT_EQ(data->classes().size(), 11u);

  ImportOptions labeled = options("src", "out/l.h5");
  write("l.csv", "a,cat\nb.jpg,dog\n");
  labeled.labels = folder_ / "l.csv";
  import_flat(labeled);
  EXPECT_EQ(Dataset::open(folder_ / "out/l.h5")->labels(), (std::vector<int64_t>{1, -1, 0}));
  write("l.csv", "nothing,cat\n");
  labeled.overwrite = Overwrite::replace;
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { import_flat(labeled); }), "names none of the images"));
}

TEST_F(ImportImages, SizesOfJpegFilesAreStored) {
  for (int i = 0; i < 4; ++i) write("one/" + std::to_string(i) + ".jpg", noise_jpeg(static_cast<uint64_t>(i), 20));
  import_flat(options("one"));
  EXPECT_EQ(Dataset::open(folder_ / "out/x.h5")->shape(), (std::vector<int32_t>{20, 20, 3}));
  const int32_t sides[] = {16, 40, 24, 32, 8};
  for (int i = 0; i < 5; ++i)
    write("many/" + std::to_string(i) + ".jpg", noise_jpeg(static_cast<uint64_t>(i), sides[i]));
  for (const int shards : {1, 2}) {
    ImportOptions many = options("many", "out/m.h5");
    many.shards = shards;
    many.overwrite = Overwrite::replace;
    import_flat(many);
    const auto data = Dataset::open(folder_ / "out/m.h5");
    EXPECT_EQ(data->size(), 5);
    EXPECT_EQ(data->shape(), (std::vector<int32_t>{0, 0, 3}));
    EXPECT_EQ(data->sides().height.min, 8);
    EXPECT_EQ(data->sides().width.max, 40);
    EXPECT_EQ(data->sides().height.median, 24);
  }
}

TEST_F(ImportImages, TheListingOfFilesCanBeStopped) {
  for (int i = 0; i < 1000; ++i) write("src/" + std::to_string(i) + ".txt", "");
  write("src/a.jpg", noise_jpeg(1));
  ImportOptions stopped = options("src");
  stopped.progress = [](int64_t, int64_t total) {
    if (total == 0) throw Error(Exit::check_failed, "stopped");
  };
  EXPECT_EQ(error_of(Exit::check_failed, [&] { import_flat(stopped); }), "stopped");
  EXPECT_TRUE(made().empty());
}

TEST_F(ImportImages, PngFilesOfOneSizeLoseNothing) {
  std::vector<uint8_t> pixels(6 * 5 * 3, 0);
  for (int k = 0; k < 4; ++k) {
    pixels[static_cast<size_t>(7 * k)] = 200;
    const std::vector<uint8_t> png = encode_png(pixels.data(), 6, 5, 3);
    write("src/" + std::to_string(k) + ".png", {png.begin(), png.end()});
  }
  import_flat(options("src"));
  auto data = Dataset::open(folder_ / "out/x.h5");
  EXPECT_EQ(data->encoding(), Encoding::raw);
  EXPECT_EQ(data->shape(), (std::vector<int32_t>{6, 5, 3}));
  EXPECT_EQ(sample(*data, 3), std::string(pixels.begin(), pixels.end()));
  const std::vector<uint8_t> other = encode_png(pixels.data(), 5, 6, 3);
  write("src/4.png", {other.begin(), other.end()});
  ImportOptions again = options("src");
  again.overwrite = Overwrite::replace;
  import_flat(again);
  EXPECT_EQ(Dataset::open(again.out)->encoding(), Encoding::jpeg);
  again.store = StoreAs::raw;
  EXPECT_EQ(import_flat(again).left_out, 1);
}

std::string tar_header(const std::string& name, size_t size, char type = '0') {
  std::string block(512, '\0');
  name.copy(block.data(), 100);
  std::snprintf(block.data() + 124, 12, "%011zo", size);
  block.replace(148, 8, 8, ' ');
  block[156] = type;
  block.replace(257, 6, std::string("ustar\0", 6));
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  std::snprintf(block.data() + 148, 8, "%06o", sum);
  return block;
}

// One member of a tar file: header, content, padding.
std::string tar_member(const std::string& name, const std::string& content, char type = '0') {
  return tar_header(name, content.size(), type) + content + std::string((512 - content.size() % 512) % 512, '\0');
}

TEST_F(ImportImages, WebDatasets) {
  const std::string long_name = std::string(150, 'n') + ".jpg", end(1024, '\0');
  write("src/t-0.tar", tar_member("a/001.cls", "3\n") + tar_member("a/001.jpg", noise_jpeg(1)) +
                           tar_member("a/001.json", "{}") + tar_member("a", "", '5') +
                           tar_member("002.jpg", noise_jpeg(2)) + tar_member("002.cls", "0") + end);
  write("src/t-1.tar",
        tar_member("././@LongLink", long_name + '\0', 'L') + tar_member(long_name.substr(0, 100), noise_jpeg(3)) + end);
  const ImportReport report = import_webdataset(options("src"));
  const auto data = Dataset::open(folder_ / "out/x.h5");
  ASSERT_EQ(data->size(), 3);
  EXPECT_EQ(data->labels(), (std::vector<int64_t>{3, 0, -1}));
  EXPECT_EQ(sample(*data, 1), noise_jpeg(2));
  EXPECT_EQ(sample(*data, 2), noise_jpeg(3));
  EXPECT_EQ(data->id(2), long_name);
  EXPECT_EQ(report.ignored.at("*.json"), 1);

  write("huge.tar", tar_member("0.jpg", noise_jpeg(2)) + tar_header("1.jpg", size_t{4} << 30));
  fs::resize_file(folder_ / "huge.tar", size_t{5} << 30);  // sparse
  EXPECT_EQ(import_webdataset(options("huge.tar", "out/h.h5")).left_out, 1);
  EXPECT_TRUE(contains(read_file(folder_ / "out/h-quarantine.csv"), "file of more than 2 GB: 4294967296"));

  const std::string whole = read_file(folder_ / "src/t-0.tar");
  for (const size_t size : {size_t{1}, size_t{511}, size_t{700}, size_t{1600}}) {
    write("cut.tar", whole.substr(0, size));
    EXPECT_TRUE(contains(error_of(Exit::data, [&] { import_webdataset(options("cut.tar", "out/c.h5")); }), "is cut"))
        << size;
  }
  write("bad.tar", "\x1f\x8b" + whole.substr(2));
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { import_webdataset(options("bad.tar", "out/c.h5")); }),
                       "is not a tar file, or is damaged at byte 0"));
}

TEST_F(ImportImages, TheBytesDoNotDependOnTheThreads) {
  for (int i = 0; i < 300; ++i)
    write("src/" + std::to_string(i % 7) + "/" + std::to_string(i) + ".jpg",
          i % 41 == 0 ? "" : noise_jpeg(static_cast<uint64_t>(i), 20 + i % 30));
  std::vector<std::string> first;
  for (const int threads : {1, 2, 5}) {
    ImportOptions o = options("src", "out/" + std::to_string(threads) + ".h5");
    o.threads = threads;
    o.shards = 3;
    o.resize_shorter = 30;
    const ImportReport report = import_folder(o);
    std::vector<std::string> files;
    for (const std::string& file : report.splits[0].files) files.push_back(read_file(file));
    if (first.empty()) first = files;
    EXPECT_TRUE(files == first) << threads;
    EXPECT_TRUE(
        verify_dataset({folder_ / ("out/" + std::to_string(threads) + ".h5")}, 9, [](int64_t, int64_t) {}).good());
  }
}

// ---- killed anywhere ----------------------------------------------------------------------------------------------

// The import in a process of its own, killed after a while. Returns whether it had ended before.
bool killed_import(const ImportOptions& options, std::chrono::microseconds after) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      import_folder(options);
      ::_exit(0);
    } catch (...) {
      ::_exit(1);
    }
  }
  std::this_thread::sleep_for(after);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "the import failed";
  return WIFEXITED(status);
}

TEST_F(ImportImages, AfterFiftyKillsTheResultIsThatOfOneImport) {
  constexpr int kImages = 400;
  for (int i = 0; i < kImages; ++i) {
    write("src/" + std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg",
          i % 97 == 5 ? noise_jpeg(1).substr(0, 99) : noise_jpeg(static_cast<uint64_t>(i), 128));
  }
  ImportOptions o = options("src", "out/first.h5");
  o.shards = 2;
  import_folder(o);  // the first one also waits for the disk: its time is no measure for the next ones
  o.out = folder_ / "out/calm.h5";
  const auto start = std::chrono::steady_clock::now();
  const ImportReport calm = import_folder(o);
  const auto calm_time =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
  std::vector<std::string> expected;
  for (const std::string& file : calm.splits[0].files) expected.push_back(read_file(file));
  expected.push_back(read_file(calm.quarantine));

  const uint64_t seed = 23;
  Random random(seed, Purpose::noise);
  int kills = 0, resumed = 0;
  constexpr int kResumed = 5;
  for (int trial = 0; kills < 50 || (resumed < kResumed && kills < 500);
       ++trial) {  // how many hit the middle is the machine's
    fs::remove_all(folder_ / "out");
    fs::create_directory(folder_ / "out");
    o.out = folder_ / "out/calm.h5";
    bool published = false;  // only the empty folder remains to be removed
    for (int k = 0; k < 3 && !published; ++k) {
      kills +=
          !killed_import(o, std::chrono::microseconds(random.below(static_cast<uint64_t>(calm_time.count()) * 5 / 4)));
      published =
          fs::exists(folder_ / "out/calm-00001-of-00002.h5") && !fs::exists(folder_ / "out/calm.h5.importing/journal");
      // Every visible name is a complete file; no name appears before all files are on the disk.
      for (const std::string& name : made()) {
        if (!name.ends_with(".h5")) continue;
        EXPECT_TRUE(verify_dataset({folder_ / ("out/" + name)}, 1, [](int64_t, int64_t) {}).good()) << name;
      }
    }
    if (!published) {
      const ImportReport report = import_folder(o);
      resumed += report.resumed > 0;
      EXPECT_EQ(report.left_out, calm.left_out);
      EXPECT_EQ(report.splits[0].samples, calm.splits[0].samples);
    }
    for (size_t f = 0; f < calm.splits[0].files.size(); ++f) {
      ASSERT_TRUE(read_file(calm.splits[0].files[f]) == expected[f])
          << "seed " << seed << " trial " << trial << " shard " << f;
    }
    ASSERT_EQ(read_file(calm.quarantine), expected.back());
    ASSERT_TRUE(published || made().size() == 3u) << "something was left behind";
  }
  EXPECT_GE(resumed, kResumed) << "of " << kills << " kills: too few trials had something to take over";
}

TEST_F(ImportImages, ADamagedPartIsImportedAgain) {
  for (int i = 0; i < 200; ++i)
    write("src/a/" + std::to_string(1000 + i) + ".jpg", noise_jpeg(static_cast<uint64_t>(i), 96));
  ImportOptions o = options("src");
  import_folder(o);
  const std::string expected = read_file(o.out);
  fs::remove(o.out);
  int64_t stop_at = 150;
  o.progress = [&](int64_t done, int64_t) {
    if (done >= stop_at) throw Error(Exit::check_failed, "stopped");
  };
  EXPECT_EQ(error_of(Exit::check_failed, [&] { import_folder(o); }), "stopped");
  const std::string part = folder_ / "out/x.h5.importing/x.h5", journal = folder_ / "out/x.h5.importing/journal";
  o.progress = nullptr;
  const size_t size = fs::file_size(part);
  ASSERT_GT(size, size_t{1} << 20);
  poke(part, size / 2, 'x');                                     // a byte that never reached the disk
  write_file(journal, read_file(journal) + "i 12 00000000\t0");  // a torn line
  const ImportReport report = import_folder(o);
  EXPECT_GT(report.resumed, 5);
  EXPECT_LT(report.resumed, 150);
  EXPECT_TRUE(read_file(o.out) == expected);

  fs::remove(o.out);  // another option: nothing is taken over
  stop_at = 150;
  o.progress = [&](int64_t done, int64_t) {
    if (done >= stop_at) throw Error(Exit::check_failed, "stopped");
  };
  EXPECT_EQ(error_of(Exit::check_failed, [&] { import_folder(o); }), "stopped");
  o.progress = nullptr;
  o.resize_shorter = 50;
  EXPECT_EQ(import_folder(o).resumed, 0);
}

// Three files that cannot be read, all counted and listed; a journal line that contradicts the source is refused.
TEST_F(ImportImages, TheJournalsLinesOfSkippedFilesAreChecked) {
  for (int i = 0; i < 200; ++i)
    write("src/a/" + std::to_string(1000 + i) + ".jpg", noise_jpeg(static_cast<uint64_t>(i), 96));
  for (const int i : {1003, 1005, 1199}) write("src/a/" + std::to_string(i) + ".jpg", "");
  ImportOptions o = options("src");
  const ImportReport calm = import_folder(o);
  EXPECT_EQ(calm.left_out, 3);
  const std::string expected = read_file(o.out), list = read_file(calm.quarantine);
  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), 4);
  fs::remove(o.out);
  o.progress = [](int64_t done, int64_t) {
    if (done >= 150) throw Error(Exit::check_failed, "stopped");
  };
  EXPECT_EQ(error_of(Exit::check_failed, [&] { import_folder(o); }), "stopped");
  o.progress = nullptr;
  const std::string journal = folder_ / "out/x.h5.importing/journal";
  std::string text = read_file(journal);
  const size_t at = text.find("without bytes");
  ASSERT_NE(at, std::string::npos);
  text[at + 9] = 'n';
  write_file(journal, text);
  const ImportReport report = import_folder(o);
  EXPECT_EQ(report.resumed, 3);
  EXPECT_EQ(report.left_out, 3);
  EXPECT_EQ(read_file(report.quarantine), list);
  EXPECT_TRUE(read_file(o.out) == expected);
}

TEST_F(ImportImages, OneImportAtATime) {
  for (int i = 0; i < 120; ++i) write("src/a/" + std::to_string(i) + ".jpg", noise_jpeg(static_cast<uint64_t>(i)));
  ImportOptions o = options("src");
  std::string error;
  o.progress = [&](int64_t, int64_t) {
    if (error.empty()) error = error_of(Exit::usage, [&] { import_folder(options("src")); });
  };
  import_folder(o);
  EXPECT_TRUE(contains(error, "another import is writing to this folder")) << error;
}

TEST_F(ImportImages, AJournalThatIsALinkIsRefused) {
  write("src/a/1.jpg", noise_jpeg(1));
  write_file(folder_ / "other", "of another");
  fs::create_directories(folder_ / "out/x.h5.importing");
  fs::create_symlink(folder_ / "other", folder_ / "out/x.h5.importing/journal");
  EXPECT_TRUE(contains(error_of(Exit::data, [&] { import_folder(options("src")); }), "journal cannot be written"));
  EXPECT_EQ(read_file(folder_ / "other"), "of another");
}

}  // namespace
}  // namespace pal::data
