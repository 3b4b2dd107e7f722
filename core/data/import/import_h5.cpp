// import_h5: the two layouts in which other libraries keep images in HDF5:
//   a group for each class, in it a data set for each image: the bytes of its file, or pixels (height, width[,
//   channels]); encoded_images, a list of byte arrays, and targets, their labels.
// Both may be in the file's root or, for several splits, in its groups train and test (or val, validation).
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/data/image/png.h"
#include "core/data/import/import_internal.h"
#include "core/io/h5_foreign.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

class H5Source final : public ImageSource {
 public:
  explicit H5Source(const std::string& path) : file_(path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) changed_ = status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
    std::vector<std::string> texts;  // labels
    for (const auto& [split, group] : parts()) {
      const auto begin = static_cast<int64_t>(images.size());
      if (file_.has(join(group, kImages)))
        add_list(group, texts);
      else
        add_classes(group, texts);
      splits.push_back({split, begin, static_cast<int64_t>(images.size())});
    }
    const LabelNames names(texts);
    classes = names.classes();
    for (size_t i = 0; i < images.size(); ++i) images[i].label = names.label(texts[i]);
  }

  void read(int64_t image, std::vector<uint8_t>& file) const override {
    const Place& place = places_[static_cast<size_t>(image)];
    if (place.row >= 0) return file_.read_bytes(place.name, place.row, file);
    const std::vector<int64_t> shape = file_.shape(place.name);
    const bool pixels = shape.size() > 1;
    const int64_t channels = shape.size() == 3 ? shape[2] : 1;
    if (pixels) {
      PAL_DATA_CHECK(shape.size() <= 3 && (channels == 1 || channels == 3),
                     "the array does not have the shape of an image", place.name,
                     "it must be (height, width) or (height, width, 1 or 3)");
      check_image_size(shape[0], shape[1], {});
    }
    check_written(place.name);
    file_.read_bytes(place.name, file);
    if (!pixels) return;
    // Pixels are treated as a PNG file: lossless.
    file = encode_png(file.data(), static_cast<int32_t>(shape[0]), static_cast<int32_t>(shape[1]),
                      static_cast<int>(channels));
  }

 private:
  static constexpr const char* kImages = "encoded_images";
  static constexpr const char* kTargets = "targets";
  struct Place {
    std::string name;
    int64_t row = -1;  // −1: the data set is the image
  };

  static std::string join(const std::string& group, const std::string& name) {
    return group == "/" ? name : group + "/" + name;
  }

  // HDF5 reads what was declared and never written as zeros.
  void check_written(const std::string& name) const {
    PAL_DATA_CHECK(file_.written(name), file_.path() + ": data set {} was declared but not (wholly) written", name,
                   "write it again");
  }

  // Splits and their groups: train and a test beside it, or the root.
  std::vector<std::pair<std::string, std::string>> parts() const {
    for (const char* test : {"test", "val", "validation"}) {
      if (file_.has("train") && file_.has(test)) return {{"train", "train"}, {"test", test}};
    }
    return {{"", "/"}};
  }

  void add_list(const std::string& group, std::vector<std::string>& texts) {
    const std::string name = join(group, kImages);
    const std::vector<int64_t> shape = file_.shape(name);
    PAL_DATA_CHECK(shape.size() == 1, file_.path() + ": data set {} has the wrong shape", name, "it must be a list");
    check_written(name);
    std::vector<int64_t> targets(static_cast<size_t>(shape[0]), -1);
    if (file_.has(join(group, kTargets))) {
      check_written(join(group, kTargets));
      targets = file_.integers(join(group, kTargets));
      PAL_DATA_CHECK(static_cast<int64_t>(targets.size()) == shape[0], file_.path() + ": targets has length {}",
                     targets.size(), "encoded_images has length " + std::to_string(shape[0]));
    }
    for (int64_t row = 0; row < shape[0]; ++row) {
      images.push_back({(group == "/" ? "" : group + "/") + std::to_string(row), -1, 0, changed_});
      places_.push_back({name, row});
      texts.push_back(std::to_string(targets[static_cast<size_t>(row)]));
    }
  }

  void add_classes(const std::string& root, std::vector<std::string>& texts) {
    for (const auto& group : file_.members(root)) {
      if (group.kind != io::h5::ForeignFile::Member::group) {
        ++ignored["data sets outside of groups"];
        continue;
      }
      const std::string name = join(root, group.name);
      for (const auto& member : file_.members(name)) {
        if (member.kind != io::h5::ForeignFile::Member::data_set) {
          ++ignored["groups within groups"];
          continue;
        }
        images.push_back({name + "/" + member.name, -1, 0, changed_});
        places_.push_back({name + "/" + member.name});
        texts.push_back(group.name);
      }
    }
    PAL_DATA_CHECK(!images.empty(), file_.path() + " has neither encoded_images nor groups with images", root,
                   "see `pal help data`");
  }

  io::h5::ForeignFile file_;
  std::vector<Place> places_;
  int64_t changed_ = 0;
};

}  // namespace

std::unique_ptr<ImageSource> h5_source(const ImportOptions& options) {
  PAL_DATA_CHECK(std::filesystem::is_regular_file(options.source), "this file does not exist", options.source,
                 "give an HDF5 file");
  auto source = std::make_unique<H5Source>(options.source);
  apply_labels(*source, options);
  return source;
}

ImportReport import_h5(const ImportOptions& options) { return import_images(h5_source(options), options); }

}  // namespace pal::data
