#include "core/data/feature_set.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <filesystem>

#include "core/data/dataset.h"
#include "core/io/crc32c.h"
#include "core/io/h5_foreign.h"
#include "core/io/npy.h"
#include "core/io/regular_file.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

namespace fs = std::filesystem;

at::ScalarType float_type(const std::string& type, const std::string& path) {
  if (type == "<f4") return at::kFloat;
  if (type == "<f8") return at::kDouble;
  PAL_DATA_CHECK(type == "<f2", path + ": the features have type {}", type, "save them as float16, float32 or float64");
  return at::kHalf;
}

std::vector<int64_t> npy_labels(const std::string& path) {
  io::Npy file = io::read_npy(path);
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
    io::Npy file = io::read_npy(path);
    PAL_DATA_CHECK(file.shape.size() == 2, path + ": the features have {} dimensions", file.shape.size(),
                   "save an array (samples, D)");
    io::check_fits_memory(path, sizeof(float) * static_cast<double>(file.shape[0] * file.shape[1]));
    set.rows = at::from_blob(file.bytes.data() + file.begin, file.shape, float_type(file.type, path))
                   .to(at::kFloat, false, /*copy=*/true);
  }
  const std::string labels = path.substr(0, path.size() - 4) + "-labels.npy";
  if (fs::exists(labels)) set.labels = npy_labels(labels);
  return set;
}

std::vector<int64_t> shape_in(const io::h5::ForeignFile& file, const std::string& path) {
  std::vector<int64_t> shape = file.shape("features");
  PAL_DATA_CHECK(shape.size() == 2, path + ": /features has {} dimensions", shape.size(),
                 "write an array (samples, D)");
  int64_t values = 0;
  PAL_DATA_CHECK(!__builtin_mul_overflow(shape[0], shape[1], &values) && values >= 0,
                 path + ": /features has an impossible shape; rows", shape[0], "write it again");
  return shape;
}

FeatureSet from_h5(const std::string& path) {
  const io::h5::ForeignFile file(path);
  FeatureSet set;
  const std::vector<int64_t> shape = shape_in(file, path);
  for (const char* name : {"features", "labels"}) {
    PAL_DATA_CHECK(!file.has(name) || file.written(name), path + ": the array was declared but not (wholly) written",
                   name, "write it again");
  }
  io::check_fits_memory(path, sizeof(float) * static_cast<double>(shape[0]) * static_cast<double>(shape[1]));
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
  if (!path.ends_with(".npy")) return shape_in(io::h5::ForeignFile(path), path)[1];
  const io::Npy file = io::read_npy(path);
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
