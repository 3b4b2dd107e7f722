// import_cifar: the binary versions of CIFAR-10 and CIFAR-100: records of label bytes and a planar 3 × 32 × 32 image.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "core/data/import/split_writer.h"
#include "core/io/file_handle.h"
#include "core/io/regular_file.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

namespace fs = std::filesystem;
constexpr int kSide = 32;
constexpr size_t kPlane = kSide * kSide, kImageBytes = 3 * kPlane;

struct CifarFormat {
  std::string folder;                                                 // as the archive unpacks
  std::vector<std::string> train, test;                               // files
  std::string class_file, parent_file;                                // one name a line; parent_file empty: none
  size_t label_bytes() const { return parent_file.empty() ? 1 : 2; }  // (coarse,) fine
  size_t record_bytes() const { return label_bytes() + kImageBytes; }
};

std::vector<std::string> read_names(const std::string& path) {
  PAL_DATA_CHECK(fs::exists(path), "this file does not exist", path, "unpack the archive again");
  std::istringstream in(io::read_regular_file(path, 1 << 20));
  std::vector<std::string> names;
  for (std::string line; std::getline(in, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  return names;
}

// One .bin file, record by record.
class CifarFile {
 public:
  CifarFile(const std::string& path, size_t record_bytes)
      : file_(io::FileHandle::open_for_reading(path)), record_(record_bytes) {
    PAL_DATA_CHECK(file_.size() > 0 && file_.size() % record_bytes == 0, path + " is cut off at {} bytes", file_.size(),
                   "its records have " + std::to_string(record_bytes) + " bytes; unpack the archive again");
  }
  const std::string& path() const { return file_.path(); }
  int64_t records() const { return static_cast<int64_t>(file_.size() / record_.size()); }
  const std::vector<uint8_t>& read(int64_t record) {
    const bool whole = file_.read_at(static_cast<uint64_t>(record) * record_.size(), record_.data(), record_.size());
    PAL_DATA_CHECK(whole, path() + " is cut off", "", "unpack the archive again");
    return record_;
  }

 private:
  io::FileHandle file_;
  std::vector<uint8_t> record_;
};

std::vector<CifarFile> open_files(const std::string& folder, const std::vector<std::string>& names,
                                  size_t record_bytes) {
  std::vector<CifarFile> files;
  for (const std::string& name : names) files.emplace_back((fs::path(folder) / name).string(), record_bytes);
  return files;
}

int64_t count(const std::vector<CifarFile>& files) {
  int64_t records = 0;
  for (const CifarFile& file : files) records += file.records();
  return records;
}

// The taxonomy, C leaves then the coarse classes, from each record's two labels; checks every label on the way.
std::vector<int64_t> find_parents(std::vector<CifarFile*> files, int64_t classes, int64_t coarse_classes) {
  std::vector<int64_t> parents(static_cast<size_t>(classes + coarse_classes), -1);
  for (CifarFile* file : files) {
    for (int64_t i = 0; i < file->records(); ++i) {
      const std::vector<uint8_t>& record = file->read(i);
      const std::string where = file->path() + ": record " + std::to_string(i);
      PAL_DATA_CHECK(record[0] < coarse_classes, where + " has coarse label {}, which is out of range", int{record[0]},
                     "there are " + std::to_string(coarse_classes) + " coarse classes");
      PAL_DATA_CHECK(record[1] < classes, where + " has label {}, which is out of range", int{record[1]},
                     "there are " + std::to_string(classes) + " classes");
      int64_t& parent = parents[record[1]];
      PAL_DATA_CHECK(parent == -1 || parent == classes + record[0],
                     where + " puts class {} under a second coarse class", int{record[1]}, "unpack the archive again");
      parent = classes + record[0];
    }
  }
  return parents;
}

void append_files(SplitWriter& writer, std::vector<CifarFile>& files, const CifarFormat& format,
                  const ShardSpec& spec) {
  writer.begin(spec);
  std::vector<uint8_t> image(kImageBytes);
  for (CifarFile& file : files) {
    const std::string stem = fs::path(file.path()).stem().string();
    for (int64_t i = 0; i < file.records(); ++i) {
      const std::vector<uint8_t>& record = file.read(i);
      const uint8_t* planes = record.data() + format.label_bytes();
      for (size_t p = 0; p < kPlane; ++p) {
        for (size_t c = 0; c < 3; ++c) image[3 * p + c] = planes[c * kPlane + p];
      }
      writer.append({image.data(), image.size(), record[format.label_bytes() - 1], stem + "-" + std::to_string(i)});
    }
  }
}

ImportReport import_cifar(const ImportOptions& options, const CifarFormat& format) {
  const std::string folder = source_folder(options.source, format.folder, format.train.front());
  ShardSpec spec;
  spec.shape = {kSide, kSide, 3};
  spec.classes = options.classes;
  if (spec.classes.empty()) spec.classes = read_names((fs::path(folder) / format.class_file).string());
  std::vector<CifarFile> train = open_files(folder, format.train, format.record_bytes());
  std::vector<CifarFile> test = open_files(folder, format.test, format.record_bytes());
  if (!format.parent_file.empty()) {
    spec.parent_names = read_names((fs::path(folder) / format.parent_file).string());
    spec.parents = find_parents({&train[0], &test[0]}, static_cast<int64_t>(spec.classes.size()),
                                static_cast<int64_t>(spec.parent_names.size()));
  }
  SplitWriter writer(options, {{"train", count(train)}, {"test", count(test)}});
  append_files(writer, train, format, spec);
  append_files(writer, test, format, spec);
  return writer.publish();
}

}  // namespace

ImportReport import_cifar10(const ImportOptions& options) {
  return import_cifar(
      options, {"cifar-10-batches-bin",
                {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
                {"test_batch.bin"},
                "batches.meta.txt",
                ""});
}

ImportReport import_cifar100(const ImportOptions& options) {
  return import_cifar(
      options, {"cifar-100-binary", {"train.bin"}, {"test.bin"}, "fine_label_names.txt", "coarse_label_names.txt"});
}

}  // namespace pal::data
