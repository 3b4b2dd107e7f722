#include "launch/run/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/data/dataset.h"
#include "core/data/import/import.h"
#include "core/io/csv.h"
#include "core/io/files.h"
#include "core/record/run_info.h"
#include "kernels/base/error.h"
#include "kernels/base/hash.h"
#include "kernels/base/printable.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kManyLabels = 20000;  // of so many a tenth is enough to test on

using Counts = std::map<std::string, int64_t>;  // images by class

std::string first_folder(const std::string& id) {
  const size_t slash = id.find('/');
  return slash == std::string::npos ? "" : id.substr(0, slash);
}

// While all images are in one folder: goes into it. Ids are then paths from there.
void enter_only_folder(std::string& path, std::vector<data::FoundImage>& images) {
  for (;;) {
    const std::string name = first_folder(images[0].id);
    const auto inside = [&](const data::FoundImage& image) { return first_folder(image.id) == name; };
    if (name.empty() || !std::all_of(images.begin(), images.end(), inside)) return;
    path = (fs::path(path) / name).string();
    for (data::FoundImage& image : images) image.id = image.id.substr(name.size() + 1);
  }
}

// "test", "val" or "validation", where that folder is beside "train"; "": the pictures are not divided.
std::string given_test_folder(const std::string& path) {
  for (const char* test : {"test", "val", "validation"}) {  // the order of `pal data import folder`
    if (fs::is_directory(fs::path(path) / "train") && fs::is_directory(fs::path(path) / test)) return test;
  }
  return "";
}

// The share of the images that becomes the test part: a fifth, more where the smallest class has few.
double test_fraction(const Counts& classes) {
  int64_t all = 0, least = kManyLabels;
  for (const auto& [name, count] : classes) {
    all += count;
    if (count > 1) least = std::min(least, count);
  }
  return all > kManyLabels ? 0.1 : std::clamp(2.0 / static_cast<double>(least), 0.2, 0.4);
}

std::string names_text(const Counts& classes) {
  std::string text;
  size_t shown = 0;
  for (const auto& [name, count] : classes) {
    if (++shown > 5) return text + ", …";
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

void add_test_part(ImageFolder& folder, const Counts& classes, const std::string& groups) {
  const double fraction = test_fraction(classes);
  folder.words.insert(folder.words.end(), {"--test-fraction", fmt::format("{:.2g}", fraction)});
  if (!groups.empty()) folder.words.insert(folder.words.end(), {"--groups", groups});
  folder.notes.push_back(fmt::format("{:.0f} % of each class become the test part{}, the same at every start",
                                     100 * fraction,
                                     groups.empty() ? "" : "; images of one group of " + groups + " stay together"));
}

// Classes by sub-folders. Leaves the folder without labels where they are no set of classes.
void take_subfolders(ImageFolder& folder, const std::vector<data::FoundImage>& images, const FolderOptions& options) {
  const std::string test = given_test_folder(folder.path);
  Counts classes, tested;
  int64_t outside = 0;
  for (const data::FoundImage& image : images) {
    const std::string part = test.empty() ? "" : first_folder(image.id);
    if (!test.empty() && part != "train" && part != test) continue;
    const std::string name = first_folder(test.empty() ? image.id : image.id.substr(part.size() + 1));
    if (name.empty())
      ++outside;
    else
      ++(part == test && !test.empty() ? tested : classes)[name];
  }
  const auto several = std::count_if(classes.begin(), classes.end(), [](const auto& c) { return c.second > 1; });
  if (several < 2 || (!test.empty() && tested.empty())) {
    if (!classes.empty())
      folder.notes.push_back(
          fmt::format("its {} sub-folder{} no set of classes, because {}: the images have no labels", classes.size(),
                      classes.size() == 1 ? " is" : "s are",
                      several < 2 ? "at least two with two images each are needed" : "none is in the folder " + test));
    return;
  }
  folder.labeled = true;
  folder.words[2] = "folder";
  folder.notes.push_back(fmt::format("its {} sub-folders are taken as classes: {} (--labels none ignores them)",
                                     classes.size(), names_text(classes)));
  if (outside > 0) folder.notes.push_back(fmt::format("{} images outside of these folders have no label", outside));
  if (test.empty())
    add_test_part(folder, classes, options.groups);
  else
    folder.notes.push_back("the folders train and " + test + " are taken as the training and the test part");
}

// Labels of a CSV file; FILE:COLUMN names the column in its header.
void take_labels(ImageFolder& folder, const std::vector<data::FoundImage>& images, const FolderOptions& options) {
  std::string file = options.labels, column;
  const size_t colon = file.rfind(':');
  if (!fs::exists(file) && colon != std::string::npos) {
    column = file.substr(colon + 1);
    file = file.substr(0, colon);
  }
  PAL_DATA_CHECK(fs::is_regular_file(file), "the file of --labels does not exist", file,
                 "give a CSV file (image,label), FILE:COLUMN, or none");
  const io::LabelsByFile labels(file, io::read_manifest(file, {"", column}).rows);
  Counts classes;
  for (const data::FoundImage& image : images) {
    const std::string* label = labels.find(image.id);
    if (label && !label->empty() && *label != "-1") ++classes[*label];
  }
  PAL_DATA_CHECK(classes.size() >= 2,
                 "labels of two classes or more are needed; classes that " + file + " gives these images",
                 classes.size(), "check its columns (pal help data, Labels), or give --labels FILE:COLUMN");
  folder.labeled = true;
  folder.words.insert(folder.words.end(), {"--labels", file});
  if (!column.empty()) folder.words.insert(folder.words.end(), {"--label-column", column});
  folder.notes.push_back(fmt::format("{} names {} classes: {}", file, classes.size(), names_text(classes)));
  add_test_part(folder, classes, options.groups);
}

std::string fingerprint_of(const std::vector<data::FoundImage>& images) {
  uint64_t key = pal::mix(0, images.size());
  for (const data::FoundImage& image : images) {
    for (const char c : image.id) key = pal::mix(key, static_cast<unsigned char>(c));
    key = pal::mix(pal::mix(key, image.bytes), static_cast<uint64_t>(image.changed));
  }
  return fmt::format("{} images, {:016x}", images.size(), key);
}

}  // namespace

bool is_picture_folder(const std::string& path) {
  if (!fs::is_directory(path) || fs::exists(fs::path(path) / "config.yaml")) return false;
  const auto shard = [](const fs::directory_entry& entry) { return entry.path().extension() == ".h5"; };
  std::error_code unreadable;  // the import names the reason
  return std::none_of(fs::directory_iterator(path, unreadable), fs::directory_iterator(), shard);
}

ImageFolder look_at_folder(const std::string& path, const FolderOptions& options) {
  PAL_DATA_CHECK(fs::exists(path), "this folder does not exist", path, "give the folder with the images");
  PAL_CHECK(fs::is_directory(path), "this is a file", path, "give the folder with the images");
  std::vector<data::FoundImage> images = data::find_images(path);
  PAL_DATA_CHECK(!images.empty(), "there is no image below this folder", path, "give a folder with JPEG or PNG files");
  if (!options.groups.empty()) io::read_manifest_column(options.groups);  // throws where the column is missing
  ImageFolder folder;
  folder.path = path;
  folder.images = static_cast<int64_t>(images.size());
  folder.fingerprint = fingerprint_of(images);
  enter_only_folder(folder.path, images);
  folder.notes.push_back(fmt::format("{} images below {}", images.size(), folder.path));
  folder.words = {"data", "import", "images", folder.path};
  if (options.labels == "none")
    folder.notes.push_back("--labels none: sub-folders are not taken as classes");
  else if (options.labels.empty())
    take_subfolders(folder, images, options);
  else
    take_labels(folder, images, options);
  if (!folder.labeled)
    folder.notes.push_back("without labels all images are trained on, and no test part is set aside");
  return folder;
}

CommandEnd run_pal(const std::string& program, const std::vector<std::string>& words, const std::string& log,
                   const std::string& remark) {
  fmt::print("\n$ pal {}{}\n", printable(record::command_text(words)), remark.empty() ? "" : "   # " + remark);
  std::vector<std::string> command = {program};
  command.insert(command.end(), words.begin(), words.end());
  return run_in_foreground(command, log);
}

ImportEnd import_once(const std::string& program, const ImageFolder& folder, const std::string& out, Changed changed) {
  std::vector<std::string> words = folder.words;
  words.insert(words.begin() + 4, out);
  const std::string command = record::command_text(words), record = fs::path(out).replace_extension(".source").string();
  const bool there = fs::exists(record) && (fs::exists(out) || !data::shard_files(out).empty());
  if (there) {
    const std::string before = io::read_whole_file(record), wanted = command + "\n" + folder.fingerprint + "\n";
    const bool same_command = before.substr(0, before.find('\n')) == command;
    PAL_CHECK(same_command || changed == Changed::import_again, out + " was made by another command, pal",
              before.substr(0, before.find('\n')), "give the same options, or another folder with --out");
    if (before == wanted || (same_command && changed == Changed::keep_import)) {
      fmt::print("the data set is {}, imported before{}\n", out,
                 before == wanted
                     ? ""
                     : "; the pictures have changed since, and this run keeps the earlier ones: --out OTHER "
                       "starts with the new ones");
      return {};
    }
  }
  fs::remove(record);
  words.push_back("--force");
  const CommandEnd end = run_pal(program, words);
  if (end.code != 0) return {end.code, true};
  io::write_file_atomically(record, command + "\n" + folder.fingerprint + "\n");
  return {end.stopped_by == 0 ? 0 : 128 + end.stopped_by, true};
}

}  // namespace pal::launch
