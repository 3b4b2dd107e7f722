// import_idx: MNIST's IDX files: a big-endian header (magic, sizes), then unsigned bytes; plain or gzip.
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/data/import/split_writer.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMaxSide = 1 << 16;

// A stream that is read to its exact end; gzip's own checksum is then checked by zlib.
class IdxFile {
 public:
  IdxFile(const std::string& path, uint32_t magic, size_t axes)
      : path_(path), stream_(gzopen(path.c_str(), "rb"), gzclose) {
    PAL_DATA_CHECK(stream_ != nullptr, path + " cannot be opened", std::strerror(errno),
                   "check the path and its permissions");
    gzbuffer(stream_.get(), 1 << 18);
    const uint32_t found = big_endian_word();
    PAL_DATA_CHECK(found == magic, path_ + " is not the expected IDX file: its magic number is {}", found,
                   "expected " + std::to_string(magic));
    for (size_t axis = 0; axis < axes; ++axis) {
      sizes_.push_back(big_endian_word());
      PAL_DATA_CHECK(sizes_.back() > 0 && (axis == 0 || sizes_.back() < kMaxSide),
                     path_ + " has the impossible size {}", sizes_.back(), "download it again");
    }
  }

  const std::string& path() const { return path_; }
  int64_t size(size_t axis) const { return sizes_[axis]; }

  void read(uint8_t* data, size_t bytes) {
    while (bytes > 0) {
      const int n = gzread(stream_.get(), data, static_cast<unsigned>(std::min<size_t>(bytes, 1 << 30)));
      check_stream();
      PAL_DATA_CHECK(n > 0, path_ + " is cut off", "it has fewer bytes than its header announces", "download it again");
      data += n;
      bytes -= static_cast<size_t>(n);
    }
  }

  void expect_end() {
    const int next = gzgetc(stream_.get());
    check_stream();
    PAL_DATA_CHECK(next == -1, path_ + " has more bytes than its header announces", "", "download it again");
  }

 private:
  void check_stream() {
    int code = Z_OK;
    const char* words = gzerror(stream_.get(), &code);
    if (code == Z_OK || code == Z_STREAM_END) return;
    const std::string reason = code == Z_ERRNO       ? std::strerror(errno)
                               : code == Z_BUF_ERROR ? "unexpected end of file"
                                                     : words;
    throw Error(Exit::data, path_ + " is cut or damaged: " + reason + "; download it again");
  }

  uint32_t big_endian_word() {
    uint8_t b[4];
    read(b, 4);
    return uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | b[3];
  }

  std::string path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> stream_;
  std::vector<int64_t> sizes_;
};

// "train-images" + "idx3": the names in use differ in a dot and in .gz.
std::string find_file(const std::string& folder, const std::string& what, const std::string& kind) {
  for (const char* joint : {"-", "."}) {
    for (const char* end : {"", ".gz"}) {
      const fs::path path = fs::path(folder) / (what + joint + kind + "-ubyte" + end);
      if (fs::exists(path)) return path.string();
    }
  }
  PAL_DATA_CHECK(false, folder + " does not hold", what + "-" + kind + "-ubyte[.gz]",
                 "give the folder with the four IDX files");
  return "";
}

struct SplitFiles {
  std::string prefix, image_file, label_file;
  std::vector<uint8_t> labels;
};

SplitFiles read_labels(const std::string& folder, const std::string& prefix) {
  SplitFiles files{
      prefix, find_file(folder, prefix + "-images", "idx3"), find_file(folder, prefix + "-labels", "idx1"), {}};
  IdxFile labels(files.label_file, 0x801, 1);
  const IdxFile images(files.image_file, 0x803, 3);
  PAL_DATA_CHECK(
      labels.size(0) == images.size(0), labels.path() + " and " + images.path() + " have different numbers of samples",
      std::to_string(labels.size(0)) + " and " + std::to_string(images.size(0)), "take both from one data set");
  files.labels.resize(static_cast<size_t>(labels.size(0)));
  labels.read(files.labels.data(), files.labels.size());
  labels.expect_end();
  return files;
}

std::vector<std::string> class_names(const ImportOptions& options, int64_t needed) {
  if (!options.classes.empty()) return options.classes;
  std::string name = fs::absolute(options.source).string();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name.find("fashion") != std::string::npos) {
    return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};
  }
  std::vector<std::string> names;
  for (int64_t c = 0; c < std::max<int64_t>(needed, 10); ++c) names.push_back(std::to_string(c));
  return names;
}

void check_labels(const SplitFiles& files, size_t classes) {
  for (size_t i = 0; i < files.labels.size(); ++i) {
    PAL_DATA_CHECK(files.labels[i] < classes,
                   files.label_file + ": label {} of sample " + std::to_string(i) + " is out of range",
                   int{files.labels[i]}, "there are " + std::to_string(classes) + " class names");
  }
}

void append_split(SplitWriter& writer, const SplitFiles& files, const std::vector<std::string>& classes) {
  IdxFile images(files.image_file, 0x803, 3);
  ShardSpec spec;
  spec.shape = {static_cast<int32_t>(images.size(1)), static_cast<int32_t>(images.size(2)), 1};
  spec.classes = classes;
  writer.begin(spec);
  std::vector<uint8_t> bytes(static_cast<size_t>(images.size(1) * images.size(2)));
  for (size_t i = 0; i < files.labels.size(); ++i) {
    images.read(bytes.data(), bytes.size());
    writer.append({bytes.data(), bytes.size(), files.labels[i], files.prefix + "-" + std::to_string(i)});
  }
  images.expect_end();
}

}  // namespace

ImportReport import_idx(const ImportOptions& options) {
  PAL_DATA_CHECK(fs::is_directory(options.source), "this folder does not exist", options.source,
                 "give the folder with the four IDX files");
  const SplitFiles train = read_labels(options.source, "train"), test = read_labels(options.source, "t10k");
  const auto largest = [](const SplitFiles& files) {
    return *std::max_element(files.labels.begin(), files.labels.end());
  };
  const std::vector<std::string> classes = class_names(options, 1 + std::max(largest(train), largest(test)));
  check_labels(train, classes.size());
  check_labels(test, classes.size());
  SplitWriter writer(options, {{"train", static_cast<int64_t>(train.labels.size())},
                               {"test", static_cast<int64_t>(test.labels.size())}});
  append_split(writer, train, classes);
  append_split(writer, test, classes);
  return writer.publish();
}

}  // namespace pal::data
