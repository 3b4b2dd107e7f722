// import_files: image files of a folder with classes, of a flat folder, of a list, of a CSV manifest.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/data/import/image_converter.h"
#include "core/data/import/import_internal.h"
#include "core/io/csv.h"
#include "core/io/file_handle.h"
#include "core/io/files.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

namespace fs = std::filesystem;

// Files by their ids, which are paths from the root (or from anywhere, when they begin with /).
class FileSource final : public ImageSource {
 public:
  explicit FileSource(std::string root) : root_(std::move(root)) {}

  void read(int64_t image, std::vector<uint8_t>& file) const override {
    const io::FileHandle handle =
        io::FileHandle::open_for_reading((root_ / images[static_cast<size_t>(image)].id).string());
    const uint64_t bytes = handle.size();
    PAL_DATA_CHECK(bytes < (uint64_t{1} << 31), "file of more than 2 GB", bytes, "leave it out");
    file.resize(bytes);
    PAL_DATA_CHECK(handle.read_at(0, file.data(), file.size()), "it became shorter while it was read", handle.path(),
                   "import again");
  }

  // Notes size and time. A file that is not there stays in the list, and is left out in its turn with the reason.
  void add(std::string id, int64_t label) {
    struct stat status {};
    SourceImage image{std::move(id), label};
    if (::stat((root_ / image.id).c_str(), &status) == 0) {
      image.bytes = static_cast<uint64_t>(status.st_size);
      image.changed = status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
    }
    images.push_back(std::move(image));
  }

 private:
  fs::path root_;
};

std::string ending_or_name(const fs::path& path) {
  return path.has_extension() ? "*" + path.extension().string() : path.filename().string();
}

// Everything below a folder, links followed but not in circles: the images' paths from `root`, the others counted.
class FolderWalk {
 public:
  FolderWalk(fs::path root, std::map<std::string, int64_t>& ignored) : root_(std::move(root)), ignored_(ignored) {}

  std::vector<std::string> images(const fs::path& below) {
    found_.clear();
    walk(below);
    return std::move(found_);
  }

 private:
  void walk(const fs::path& below) {
    struct stat status {};
    const fs::path folder = root_ / below;
    if (::stat(folder.c_str(), &status) != 0) fail_open(folder);
    const std::pair<dev_t, ino_t> place(status.st_dev, status.st_ino);
    if (!above_.insert(place).second) return;
    std::error_code failure;
    fs::directory_iterator entries(folder, failure);
    if (failure) fail_open(folder);
    for (const fs::directory_entry& entry : entries) {
      const std::string name = entry.path().filename().string();
      if (name[0] == '.')
        ++ignored_["hidden files"];
      else if (entry.is_directory(failure))
        walk(below / name);
      else if (has_image_name(name))
        found_.push_back((below / name).string());
      else
        ++ignored_[ending_or_name(name)];
    }
    above_.erase(place);
  }

  [[noreturn]] static void fail_open(const fs::path& folder) {
    throw Error(Exit::data,
                folder.string() + " cannot be read: " + std::strerror(errno) + "; check the path and its permissions");
  }

  fs::path root_;
  std::map<std::string, int64_t>& ignored_;
  std::vector<std::string> found_;
  std::set<std::pair<dev_t, ino_t>> above_;
};

void check_folder(const std::string& path) {
  PAL_DATA_CHECK(fs::is_directory(path), "this folder does not exist", path, "give the folder with the images");
}

}  // namespace

LabelNames::LabelNames(const std::vector<std::string>& texts) {
  constexpr int64_t kMaxClasses = 1000000;
  std::set<std::string> names;
  int64_t largest = -1;
  bool all_numbers = true;
  for (const std::string& text : texts) {
    if (text.empty() || text == "-1" || !names.insert(text).second) continue;
    int64_t value = -1;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    all_numbers =
        all_numbers && failure == std::errc() && end == text.data() + text.size() && value >= 0 && value < kMaxClasses;
    largest = std::max(largest, value);
  }
  if (all_numbers) {  // label 7 stays 7, even if no image has label 3
    for (int64_t c = 0; c <= largest; ++c) classes_.push_back(std::to_string(c));
    for (const std::string& name : names) numbers_.emplace(name, std::stoll(name));
    return;
  }
  classes_.assign(names.begin(), names.end());
  for (size_t c = 0; c < classes_.size(); ++c) numbers_.emplace(classes_[c], static_cast<int64_t>(c));
}

int64_t LabelNames::label(const std::string& text) const {
  const auto found = numbers_.find(text);
  return found == numbers_.end() ? -1 : found->second;
}

void apply_labels(ImageSource& source, const ImportOptions& options) {
  if (options.labels.empty()) return;
  const std::vector<io::NamedLabel> list = io::read_manifest(options.labels);
  std::vector<std::string> texts;
  std::unordered_map<std::string, std::string> by_name;
  for (const io::NamedLabel& pair : list) {
    texts.push_back(pair.label);
    const auto [found, is_new] = by_name.emplace(pair.name, pair.label);
    PAL_DATA_CHECK(is_new || found->second == pair.label, options.labels + " gives two labels for", pair.name,
                   "keep one");
  }
  const LabelNames names(texts);
  source.classes = names.classes();
  int64_t labeled = 0;
  for (SourceImage& image : source.images) {
    image.label = -1;
    const fs::path path(image.id);
    for (const std::string& name : {image.id, path.filename().string(), path.stem().string()}) {
      const auto found = by_name.find(name);
      if (found == by_name.end()) continue;
      image.label = names.label(found->second);
      ++labeled;
      break;
    }
  }
  PAL_DATA_CHECK(labeled > 0, options.labels + " names none of the images; the first image is",
                 source.images.empty() ? "" : source.images[0].id, "each row is file,label");
}

std::unique_ptr<ImageSource> folder_source(const ImportOptions& options) {
  check_folder(options.source);
  auto source = std::make_unique<FileSource>(options.source);
  FolderWalk walk(options.source, source->ignored);
  std::vector<std::pair<std::string, std::string>> parts = {{"", ""}};  // split, its folder
  for (const char* test : {"test", "val", "validation"}) {
    if (!fs::is_directory(fs::path(options.source) / "train") || !fs::is_directory(fs::path(options.source) / test))
      continue;
    parts = {{"train", "train"}, {"test", test}};
    break;
  }
  std::vector<std::vector<std::pair<std::string, std::string>>> found;  // of each part: class, path
  std::set<std::string> names;
  for (const auto& [split, folder] : parts) {
    found.emplace_back();
    for (std::string& path : walk.images(folder)) {
      const fs::path inside = fs::path(path).lexically_relative(folder.empty() ? fs::path("") : fs::path(folder));
      const fs::path below = folder.empty() ? fs::path(path) : inside;
      if (!below.has_parent_path()) {
        ++source->ignored["images outside of class folders"];
        continue;
      }
      names.insert(below.begin()->string());
      found.back().emplace_back(below.begin()->string(), std::move(path));
    }
    std::sort(found.back().begin(), found.back().end());
  }
  PAL_DATA_CHECK(!names.empty(), options.source + " has no folders with images", "",
                 "each class is a folder; for images without classes use `images`");
  source->classes.assign(names.begin(), names.end());
  for (size_t s = 0; s < parts.size(); ++s) {
    const auto begin = static_cast<int64_t>(source->images.size());
    for (auto& [name, path] : found[s]) {
      const auto label =
          std::lower_bound(source->classes.begin(), source->classes.end(), name) - source->classes.begin();
      source->add(std::move(path), label);
    }
    source->splits.push_back({parts[s].first, begin, static_cast<int64_t>(source->images.size())});
  }
  apply_labels(*source, options);
  return source;
}

std::unique_ptr<ImageSource> list_source(const ImportOptions& options) {
  std::unique_ptr<FileSource> source;
  if (fs::is_regular_file(options.source)) {  // a list: its paths begin at its folder
    source = std::make_unique<FileSource>(fs::path(options.source).parent_path().string());
    for (const io::NamedLabel& line : io::read_manifest(options.source)) source->add(line.name, -1);
  } else {
    check_folder(options.source);
    source = std::make_unique<FileSource>(options.source);
    std::vector<std::string> paths = FolderWalk(options.source, source->ignored).images("");
    std::sort(paths.begin(), paths.end());
    for (std::string& path : paths) source->add(std::move(path), -1);
  }
  source->splits = {{"", 0, static_cast<int64_t>(source->images.size())}};
  apply_labels(*source, options);
  return source;
}

std::unique_ptr<ImageSource> csv_source(const ImportOptions& options) {
  PAL_DATA_CHECK(fs::is_regular_file(options.source), "this file does not exist", options.source,
                 "give a CSV file: path,label");
  auto source = std::make_unique<FileSource>(fs::path(options.source).parent_path().string());
  const std::vector<io::NamedLabel> rows = io::read_manifest(options.source);
  std::vector<std::string> texts;
  for (const io::NamedLabel& row : rows) texts.push_back(row.label);
  const LabelNames names(texts);
  source->classes = names.classes();
  for (const io::NamedLabel& row : rows) source->add(row.name, names.label(row.label));
  source->splits = {{"", 0, static_cast<int64_t>(source->images.size())}};
  apply_labels(*source, options);
  return source;
}

ImportReport import_folder(const ImportOptions& options) { return import_images(*folder_source(options), options); }
ImportReport import_flat(const ImportOptions& options) { return import_images(*list_source(options), options); }
ImportReport import_csv(const ImportOptions& options) { return import_images(*csv_source(options), options); }

}  // namespace pal::data
