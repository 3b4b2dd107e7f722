#include "core/io/feature_file.h"

#include <ATen/core/TensorBase.h>
#include <fmt/format.h>

#include "core/io/files.h"
#include "core/io/h5.h"
#include "kernels/base/error.h"

namespace pal::io {
namespace {

void write_h5(const std::string& path, const FeatureFile& file) {
  const at::Tensor dense = file.features.contiguous();
  PartialFile partial(path);
  h5::File out = h5::File::create(partial.path(), path);
  out.handle().write_at(out.end(), dense.const_data_ptr(), dense.nbytes());
  out.describe("features", dense.scalar_type() == at::kDouble ? h5::Type::f64 : h5::Type::f32, dense.numel(),
               static_cast<int64_t>(dense.element_size()), dense.size(1));
  if (!file.labels.empty()) out.write("labels", file.labels);
  if (!file.ids.empty()) out.write_text("ids", file.ids);
  if (!file.classes.empty()) out.write_text("classes", file.classes);
  for (const auto& [name, value] : file.about) out.set_text("/", name, value);
  out.close();
  out.handle().sync();
  partial.publish();
}

// NumPy's format 1.0: magic, version, length of the header, the header as a Python literal, raw bytes from a multiple
// of 64.
void write_npy(const std::string& path, const void* data, size_t bytes, const char* type, const std::string& shape) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, shape);
  constexpr size_t kBefore = 10;
  header.resize((kBefore + header.size() + 1 + 63) / 64 * 64 - kBefore, ' ');
  header.back() = '\n';
  PartialFile partial(path);
  FileWriter out(partial.path());
  out.write("\x93NUMPY\x01\x00", 8);
  const auto length = static_cast<uint16_t>(header.size());
  out.write(&length, sizeof(length));
  out.write(header.data(), header.size());
  out.write(data, bytes);
  out.finish();
  partial.publish();
}

}  // namespace

std::vector<std::string> write_feature_file(const std::string& path, const FeatureFile& file) {
  PAL_ASSERT(file.features.dim() == 2 &&
                 (file.features.scalar_type() == at::kFloat || file.features.scalar_type() == at::kDouble),
             "features are (n, D) in float32 or float64");
  if (path.ends_with(".h5") || path.ends_with(".hdf5")) {
    write_h5(path, file);
    return {path};
  }
  PAL_CHECK(path.ends_with(".npy"), "{} is not a name for a file of features", path, "end it with .h5 or .npy");
  const at::Tensor dense = file.features.contiguous();
  write_npy(path, dense.const_data_ptr(), dense.nbytes(), dense.scalar_type() == at::kDouble ? "<f8" : "<f4",
            fmt::format("{}, {}", dense.size(0), dense.size(1)));
  if (file.labels.empty()) return {path};
  const std::string labels = path.substr(0, path.size() - 4) + "-labels.npy";
  write_npy(labels, file.labels.data(), file.labels.size() * sizeof(int64_t), "<i8",
            fmt::format("{},", file.labels.size()));
  return {path, labels};
}

}  // namespace pal::io
