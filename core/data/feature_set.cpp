#include "core/data/feature_set.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <regex>

#include "core/data/dataset.h"
#include "core/io/crc32c.h"
#include "core/io/files.h"
#include "core/io/h5_foreign.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

namespace fs = std::filesystem;

struct Npy {
  std::string type;  // "<f4"
  std::vector<int64_t> shape;
  std::string bytes;  // of the whole file
  size_t begin = 0;   // of the data
};

// Magic, version, length of the header (2 bytes in version 1, 4 later), a Python literal, raw bytes.
Npy read_npy(const std::string& path) {
  Npy file;
  file.bytes = io::read_whole_file(path);
  const std::string& b = file.bytes;
  PAL_DATA_CHECK(b.size() >= 12 && b.compare(0, 6, "\x93NUMPY") == 0, "this is not a NumPy file", path,
                 "write it with numpy.save");
  const bool first = b[6] == 1;
  uint32_t length = 0;
  std::memcpy(&length, b.data() + 8, first ? 2 : 4);
  file.begin = (first ? 10 : 12) + size_t{length};
  PAL_DATA_CHECK(file.begin <= b.size(), "the NumPy file is cut off", path, "write it again");
  const std::string header = b.substr(first ? 10 : 12, length);
  std::smatch part;
  static const std::regex kType(R"('descr'\s*:\s*'([^']+)')"), kShape(R"('shape'\s*:\s*\(([0-9, ]*)\))"),
      kOrder(R"('fortran_order'\s*:\s*False)");
  PAL_DATA_CHECK(std::regex_search(header, part, kType), "the NumPy file does not hold plain numbers", path,
                 "save an array of numbers");
  file.type = part[1];
  PAL_DATA_CHECK(file.type.find('O') == std::string::npos, "the NumPy file holds Python objects (dtype object)", path,
                 "save an array of numbers, for instance numpy.stack(rows).astype('float32')");
  PAL_DATA_CHECK(std::regex_search(header, kOrder), "the NumPy file is in Fortran order", path,
                 "save numpy.ascontiguousarray(x)");
  PAL_DATA_CHECK(std::regex_search(header, part, kShape), "the NumPy file has no shape", path,
                 "save an array of numbers");
  const std::string shape = part[1];
  static const std::regex kNumber("[0-9]{1,15}");
  int64_t values = 1;
  for (std::sregex_iterator at(shape.begin(), shape.end(), kNumber), end; at != end; ++at) {
    file.shape.push_back(std::stoll(at->str()));
    PAL_DATA_CHECK(!__builtin_mul_overflow(values, file.shape.back(), &values),
                   "the NumPy file has an impossible shape", path, "save it again");
  }
  const int64_t size = file.type.size() == 3 ? file.type[2] - '0' : 0;
  PAL_DATA_CHECK(size >= 1 && size <= 8 && values <= static_cast<int64_t>(b.size()) &&
                     static_cast<int64_t>(b.size() - file.begin) == values * size,
                 "the size of the NumPy file does not match its shape", path, "write it again; it may be cut off");
  return file;
}

at::ScalarType float_type(const std::string& type, const std::string& path) {
  if (type == "<f4") return at::kFloat;
  if (type == "<f8") return at::kDouble;
  PAL_DATA_CHECK(type == "<f2", path + ": the features have type {}", type, "save them as float16, float32 or float64");
  return at::kHalf;
}

std::vector<int64_t> npy_labels(const std::string& path) {
  Npy file = read_npy(path);
  PAL_DATA_CHECK(file.shape.size() == 1, path + ": the labels have {} dimensions", file.shape.size(),
                 "save a list of integers");
  at::ScalarType type = at::kLong;
  if (file.type == "<i4")
    type = at::kInt;
  else if (file.type == "|u1")
    type = at::kByte;
  else
    PAL_DATA_CHECK(file.type == "<i8", path + ": the labels have type {}", file.type,
                   "save them as int64, int32 or uint8");
  const at::Tensor all =
      at::from_blob(file.bytes.data() + file.begin, {file.shape[0]}, type).to(at::kLong).contiguous();
  return {all.const_data_ptr<int64_t>(), all.const_data_ptr<int64_t>() + all.numel()};
}

FeatureSet from_npy(const std::string& path) {
  FeatureSet set;
  {
    Npy file = read_npy(path);
    PAL_DATA_CHECK(file.shape.size() == 2, path + ": the features have {} dimensions", file.shape.size(),
                   "save an array (samples, D)");
    set.rows = at::from_blob(file.bytes.data() + file.begin, file.shape, float_type(file.type, path))
                   .to(at::kFloat, false, /*copy=*/true);
  }
  const std::string labels = path.substr(0, path.size() - 4) + "-labels.npy";
  if (fs::exists(labels)) set.labels = npy_labels(labels);
  return set;
}

FeatureSet from_h5(const std::string& path) {
  const io::h5::ForeignFile file(path);
  FeatureSet set;
  const std::vector<int64_t> shape = file.shape("features");
  PAL_DATA_CHECK(shape.size() == 2, path + ": /features has {} dimensions", shape.size(),
                 "write an array (samples, D)");
  for (const char* name : {"features", "labels"}) {
    PAL_DATA_CHECK(!file.has(name) || file.written(name), path + ": the array was declared but not (wholly) written",
                   name, "write it again");
  }
  int64_t values = 0;
  PAL_DATA_CHECK(!__builtin_mul_overflow(shape[0], shape[1], &values) && values < int64_t{1} << 40,
                 path + ": /features has an impossible shape; rows", shape[0], "write it again");
  set.rows = at::empty(shape, at::kFloat);
  file.read_floats("features", {set.rows.data_ptr<float>(), static_cast<size_t>(set.rows.numel())});
  if (file.has("labels")) set.labels = file.integers("labels");
  return set;
}

}  // namespace

bool is_feature_file(const std::string& path) {
  if (path.ends_with(".npy")) return true;
  if (!fs::is_regular_file(path) || !(path.ends_with(".h5") || path.ends_with(".hdf5"))) return false;
  try {
    return io::h5::ForeignFile(path).has("features");
  } catch (const Error&) {  // the reader of images reports what is wrong with the file
    return false;
  }
}

int64_t feature_width(const std::string& path) {
  if (!path.ends_with(".npy")) return io::h5::ForeignFile(path).shape("features").at(1);
  const Npy file = read_npy(path);
  PAL_DATA_CHECK(file.shape.size() == 2, path + ": the features have {} dimensions", file.shape.size(),
                 "save an array (samples, D)");
  return file.shape[1];
}

FeatureSet read_features(const std::string& path) {
  PAL_DATA_CHECK(fs::is_regular_file(path), "this file of features does not exist", path, "check the path");
  FeatureSet set = path.ends_with(".npy") ? from_npy(path) : from_h5(path);
  PAL_DATA_CHECK(set.rows.size(0) > 0 && set.rows.size(1) > 0, "the file holds no features", path, "write it again");
  PAL_DATA_CHECK(at::isfinite(set.rows).all().item<bool>(), "some features are not finite", path,
                 "remove those samples");
  PAL_DATA_CHECK(set.labels.empty() || static_cast<int64_t>(set.labels.size()) == set.rows.size(0),
                 path + ": there are {} labels", set.labels.size(),
                 "there are " + std::to_string(set.rows.size(0)) + " rows of features");
  for (const int64_t label : set.labels) {
    PAL_DATA_CHECK(label >= -1 && label < 1 << 24, path + ": label {} is not the number of a class", label,
                   "classes are numbered from 0, and -1 is unknown");
  }
  return set;
}

namespace {

class FeatureDataset final : public Dataset {
 public:
  explicit FeatureDataset(const std::string& path) : path_(path), set_(read_features(path)) {
    int64_t classes = 0;
    for (int64_t label : set_.labels) classes = std::max(classes, label + 1);
    for (int64_t c = 0; c < classes; ++c) classes_.push_back(std::to_string(c));
    spread_ = set_.rows.std(0, /*unbiased=*/false).mean().item<double>();
    for (int64_t i = 0; i < size(); ++i) {
      const uint32_t crc = io::crc32c(row(i), row_bytes());
      const uint64_t label = set_.labels.empty() ? 0 : static_cast<uint64_t>(set_.labels[i] + 1);
      fingerprint_ = (fingerprint_ ^ (uint64_t{crc} | label << 32)) * 0x9E3779B97F4A7C15ull;
      fingerprint_ ^= fingerprint_ >> 29;
    }
  }
  int64_t size() const override { return set_.rows.size(0); }
  Encoding encoding() const override { return Encoding::features; }
  double spread() const override { return spread_; }
  std::vector<int32_t> shape() const override { return {1, 1, static_cast<int32_t>(set_.rows.size(1))}; }
  const std::vector<int64_t>& labels() const override { return set_.labels; }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::string where(int64_t sample) const override { return path_ + ", row " + std::to_string(sample); }
  uint64_t fingerprint() const override { return fingerprint_; }
  void read(int64_t sample, std::vector<uint8_t>& bytes) const override {
    PAL_ASSERT(sample >= 0 && sample < size(), "a sample of the data set");
    bytes.assign(row(sample), row(sample) + row_bytes());
  }
  kernels::ImageView image(int64_t, const std::vector<uint8_t>&) const override {
    PAL_DATA_CHECK(false, "this file holds features, but images are needed", path_,
                   "give a data set made by `pal data import`");
    return {};
  }

 private:
  size_t row_bytes() const { return static_cast<size_t>(set_.rows.size(1)) * sizeof(float); }
  const uint8_t* row(int64_t i) const {
    return reinterpret_cast<const uint8_t*>(set_.rows.const_data_ptr<float>() + i * set_.rows.size(1));
  }

  const std::string path_;
  const FeatureSet set_;
  std::vector<std::string> classes_;
  double spread_ = 0;
  uint64_t fingerprint_ = 1;
};

}  // namespace

std::shared_ptr<Dataset> open_features(const std::string& path) { return std::make_shared<FeatureDataset>(path); }

}  // namespace pal::data
