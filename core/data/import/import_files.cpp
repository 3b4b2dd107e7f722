// import_files: image files of a folder with classes, of a flat folder, of a list, of a CSV manifest.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include "core/data/import/image_converter.h"
#include "core/data/import/import_internal.h"
#include "core/data/shard_format.h"
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
    PAL_DATA_CHECK(bytes <= shard_format::kMaxImageBytes, "file of more than 2 GB", bytes, "leave it out");
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

// Everything below a folder: the images' paths from `root`, the others counted. Links are followed after all real
// folders, and a folder is visited once, so that links between folders do not multiply it.
class FolderWalk {
 public:
  FolderWalk(const ImportOptions& options, std::map<std::string, int64_t>& ignored)
      : root_(options.source), progress_(options.progress), ignored_(ignored) {}

  std::vector<std::string> images(const fs::path& below) {
    found_.clear();
    seen_.clear();
    walk(below);
    while (!links_.empty()) {
      const fs::path link = links_.front();
      links_.pop_front();
      walk(link);
    }
    return std::move(found_);
  }

 private:
  void walk(const fs::path& below) {
    struct stat status {};
    const fs::path folder = root_ / below;
    if (::stat(folder.c_str(), &status) != 0) fail_open(folder);
    if (!seen_.insert({status.st_dev, status.st_ino}).second) {
      ++ignored_["links to a folder that was visited"];
      return;
    }
    std::error_code failure;
    std::set<std::string> names;  // sorted: which of several links is followed does not depend on the file system
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure))
      names.insert(entry.path().filename().string());
    if (failure) fail_open(folder);
    for (const std::string& name : names) {
      if (++entries_ % 1000 == 0 && progress_) progress_(entries_, 0);
      const fs::path path = folder / name;
      const fs::file_type type = fs::status(path, failure).type();
      if (name[0] == '.')
        ++ignored_["hidden files"];
      else if (type == fs::file_type::directory && fs::is_symlink(path, failure))
        links_.push_back(below / name);
      else if (type == fs::file_type::directory)
        walk(below / name);
      else if (type != fs::file_type::regular && type != fs::file_type::not_found && type != fs::file_type::unknown)
        ++ignored_["special files (FIFO, socket or device)"];
      else if (has_image_name(name))
        found_.push_back((below / name).string());
      else
        ++ignored_[ending_or_name(name)];
    }
  }

  [[noreturn]] static void fail_open(const fs::path& folder) {
    throw Error(Exit::data,
                folder.string() + " cannot be read: " + std::strerror(errno) + "; check the path and its permissions");
  }

  fs::path root_;
  const std::function<void(int64_t, int64_t)>& progress_;
  std::map<std::string, int64_t>& ignored_;
  std::vector<std::string> found_;
  std::deque<fs::path> links_;
  std::set<std::pair<dev_t, ino_t>> seen_;
  int64_t entries_ = 0;
};

void check_folder(const std::string& path) {
  PAL_DATA_CHECK(fs::is_directory(path), "this folder does not exist", path, "give the folder with the images");
}

}  // namespace

LabelNames::LabelNames(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> values;  // −1: not a whole number from 0
  std::set<int64_t> distinct;
  for (const std::string& text : texts) {
    if (text.empty() || text == "-1" || values.count(text) > 0) continue;
    int64_t value = -1;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || end != text.data() + text.size() || value < 0) value = -1;
    values.emplace(text, value);
    distinct.insert(value);
  }
  if (values.empty()) return;
  const bool numbers = *distinct.begin() >= 0;
  const auto occurring = static_cast<int64_t>(distinct.size()), largest = *distinct.rbegin();
  if (numbers && largest - occurring < std::max<int64_t>(occurring, 10)) {  // label 7 stays 7, even if none has label 3
    for (int64_t c = 0; c <= largest; ++c) classes_.push_back(std::to_string(c));
    numbers_ = std::move(values);
    return;
  }
  for (const auto& [text, value] : values) classes_.push_back(text);
  if (numbers)
    std::stable_sort(classes_.begin(), classes_.end(),
                     [&](const std::string& a, const std::string& b) { return values.at(a) < values.at(b); });
  for (size_t c = 0; c < classes_.size(); ++c) numbers_.emplace(classes_[c], static_cast<int64_t>(c));
}

int64_t LabelNames::label(const std::string& text) const {
  const auto found = numbers_.find(text);
  return found == numbers_.end() ? -1 : found->second;
}

namespace {

// Reports which columns of a CSV file were not read, and how to choose another one.
void note_columns(const std::string& path, const io::Manifest& list, const ImportOptions& options,
                  std::vector<std::string>& notes) {
  if (list.unused.empty()) return;
  std::string heads;
  for (const std::string& head : list.unused) heads += (heads.empty() ? "" : ", ") + head;
  notes.push_back(path + ": " + (list.label.empty() ? "" : "the labels are of column " + list.label + "; ") +
                  "columns that were not used: " + heads +
                  (options.label_column.empty() ? "; choose the label with --label-column NAME" : ""));
}

}  // namespace

void apply_labels(ImageSource& source, const ImportOptions& options) {
  if (options.labels.empty()) return;
  const io::Manifest list = io::read_manifest(options.labels, {options.path_column, options.label_column});
  note_columns(options.labels, list, options, source.notes);
  std::vector<std::string> texts;
  for (const io::NamedLabel& row : list.rows) texts.push_back(row.label);
  const LabelNames names(texts);
  const io::LabelsByFile labels(options.labels, list.rows);
  source.classes = names.classes();
  int64_t labeled = 0;
  for (SourceImage& image : source.images) {
    const std::string* label = labels.find(image.id);
    image.label = label ? names.label(*label) : -1;
    labeled += label != nullptr;
  }
  PAL_DATA_CHECK(labeled > 0, options.labels + " names none of the images; the first image is",
                 source.images.empty() ? "" : source.images[0].id, "each row is file,label");
}

std::unique_ptr<ImageSource> folder_source(const ImportOptions& options) {
  check_folder(options.source);
  auto source = std::make_unique<FileSource>(options.source);
  FolderWalk walk(options, source->ignored);
  std::vector<std::pair<std::string, std::string>> parts = {{"", ""}};  // split, its folder
  for (const char* test : {"test", "val", "validation"}) {
    if (!fs::is_directory(fs::path(options.source) / "train") || !fs::is_directory(fs::path(options.source) / test))
      continue;
    parts = {{"train", "train"}, {"test", test}};
    break;
  }
  std::vector<std::vector<std::pair<std::string, std::string>>> found;  // of each part: class ("": none), path
  std::set<std::string> names;
  int64_t outside = 0;
  for (const auto& [split, folder] : parts) {
    found.emplace_back();
    for (std::string& path : walk.images(folder)) {
      const fs::path inside = fs::path(path).lexically_relative(folder.empty() ? fs::path("") : fs::path(folder));
      const fs::path below = folder.empty() ? fs::path(path) : inside;
      const std::string name = below.has_parent_path() ? below.begin()->string() : "";
      outside += name.empty();
      if (!name.empty()) names.insert(name);
      found.back().emplace_back(name, std::move(path));
    }
    std::sort(found.back().begin(), found.back().end());
  }
  PAL_DATA_CHECK(!names.empty(), options.source + " has no folders with images", "",
                 "each class is a folder; for images without classes use `images`");
  source->classes.assign(names.begin(), names.end());
  if (outside > 0)
    source->notes.push_back("images outside of class folders: " + std::to_string(outside) + "; they have no label");
  for (size_t s = 0; s < parts.size(); ++s) {
    const auto begin = static_cast<int64_t>(source->images.size());
    for (auto& [name, path] : found[s]) {
      const auto label =
          std::lower_bound(source->classes.begin(), source->classes.end(), name) - source->classes.begin();
      source->add(std::move(path), name.empty() ? -1 : label);
    }
    source->splits.push_back({parts[s].first, begin, static_cast<int64_t>(source->images.size())});
  }
  apply_labels(*source, options);
  return source;
}

std::vector<FoundImage> find_images(const std::string& folder) {
  ImportOptions options;
  options.source = folder;
  const std::unique_ptr<ImageSource> source = list_source(options);
  std::vector<FoundImage> found;
  for (const SourceImage& image : source->images) found.push_back({image.id, image.bytes, image.changed});
  return found;
}

std::unique_ptr<ImageSource> list_source(const ImportOptions& options) {
  std::unique_ptr<FileSource> source;
  if (fs::is_regular_file(options.source)) {  // a list: its paths begin at its folder
    source = std::make_unique<FileSource>(fs::path(options.source).parent_path().string());
    for (const io::NamedLabel& line : io::read_manifest(options.source).rows) source->add(line.name, -1);
  } else {
    check_folder(options.source);
    source = std::make_unique<FileSource>(options.source);
    std::vector<std::string> paths = FolderWalk(options, source->ignored).images("");
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
  const io::Manifest list = io::read_manifest(
      options.source,
      options.labels.empty() ? io::ManifestColumns{options.path_column, options.label_column} : io::ManifestColumns{});
  note_columns(options.source, list, options, source->notes);
  std::vector<std::string> texts;
  for (const io::NamedLabel& row : list.rows) texts.push_back(row.label);
  const LabelNames names(texts);
  source->classes = names.classes();
  for (const io::NamedLabel& row : list.rows) source->add(row.name, names.label(row.label));
  source->splits = {{"", 0, static_cast<int64_t>(source->images.size())}};
  apply_labels(*source, options);
  return source;
}

ImportReport import_folder(const ImportOptions& options) { return import_images(folder_source(options), options); }
ImportReport import_flat(const ImportOptions& options) { return import_images(list_source(options), options); }
ImportReport import_csv(const ImportOptions& options) { return import_images(csv_source(options), options); }

}  // namespace pal::data
