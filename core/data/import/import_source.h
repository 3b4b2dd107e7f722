// import_source: image files, wherever they come from, as a numbered list for import_images().
//
// A source is made before anything is written: its list is the plan. The same files make the same list.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/data/import/import.h"

namespace pal::data {

struct SourceImage {
  std::string id;  // its name at the source
  int64_t label = -1;
  uint64_t bytes = 0;   // of the file
  int64_t changed = 0;  // when: a source that changed is not the one that an interrupted import began with
};

struct SourceSplit {
  std::string name;  // "train", "test"; "": the source knows no splits
  int64_t begin = 0, end = 0;
};

class ImageSource {
 public:
  virtual ~ImageSource() = default;
  // The file of an image. Throws Error (data) when it cannot be read. Thread-safe.
  virtual void read(int64_t image, std::vector<uint8_t>& file) const = 0;

  std::vector<SourceImage> images;
  std::vector<SourceSplit> splits;
  std::vector<std::string> classes;        // none: no labels
  std::map<std::string, int64_t> ignored;  // files that are not images, by their ending
};

std::unique_ptr<ImageSource> folder_source(const ImportOptions& options);
std::unique_ptr<ImageSource> list_source(const ImportOptions& options);  // images: a folder or a list
std::unique_ptr<ImageSource> csv_source(const ImportOptions& options);
std::unique_ptr<ImageSource> webdataset_source(const ImportOptions& options);
std::unique_ptr<ImageSource> h5_source(const ImportOptions& options);

// The labels of options.labels, a CSV file, for images that it names by their path, their file name, or that without its
// ending; the others are unknown.
void apply_labels(ImageSource& source, const ImportOptions& options);

// Writes the shards of a source: parallel, in order, resumable.
ImportReport import_images(ImageSource& source, const ImportOptions& options);

// Class names of labels as text: sorted, numbers by their value when all are numbers. "" is an unknown label.
class LabelNames {
 public:
  explicit LabelNames(const std::vector<std::string>& texts);
  const std::vector<std::string>& classes() const { return classes_; }
  int64_t label(const std::string& text) const;  // −1: unknown

 private:
  std::vector<std::string> classes_;
  std::map<std::string, int64_t> numbers_;
};

}  // namespace pal::data
