// import_internal: what the importers of image files share: the source, the taxonomy and the journal.
//
// A source is a numbered list of image files for import_images(). It is complete before anything is written. The same
// files give the same list.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/data/import/image_converter.h"
#include "core/data/import/import.h"

namespace pal::data {

struct SourceImage {
  std::string id;  // its name at the source
  int64_t label = -1;
  uint64_t bytes = 0;   // of the file
  int64_t changed = 0;  // time of the last change; an interrupted import resumes only from an unchanged source
};

struct SourceSplit {
  std::string name;  // "train", "test"; "": the source has no splits
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
  std::map<std::string, int64_t> ignored;  // files that are not images, by extension
  std::vector<std::string> notes;          // as in ImportReport
};

std::unique_ptr<ImageSource> folder_source(const ImportOptions& options);
std::unique_ptr<ImageSource> list_source(const ImportOptions& options);  // images: a folder or a list
std::unique_ptr<ImageSource> csv_source(const ImportOptions& options);
std::unique_ptr<ImageSource> webdataset_source(const ImportOptions& options);
std::unique_ptr<ImageSource> h5_source(const ImportOptions& options);

// The labels of options.labels, a CSV file, for images that it names (io::NameIndex); the others get an unknown label.
void apply_labels(ImageSource& source, const ImportOptions& options);

// The same source with a test split of options.test_fraction.
std::unique_ptr<ImageSource> with_test_split(std::unique_ptr<ImageSource> source, const ImportOptions& options);

// Writes the shards of a source with several threads, in order, resumable.
ImportReport import_images(std::unique_ptr<ImageSource> source, const ImportOptions& options);

// Class names of labels as text: sorted, by value when all are numbers. "" and "-1" are unknown labels. Whole numbers
// stay the numbers of their classes where at most as many of 0 … largest are missing as occur, or at most ten; else
// they are names.
class LabelNames {
 public:
  explicit LabelNames(const std::vector<std::string>& texts);
  const std::vector<std::string>& classes() const { return classes_; }
  int64_t label(const std::string& text) const;  // −1: unknown

 private:
  std::vector<std::string> classes_;
  std::map<std::string, int64_t> numbers_;
};

// The tree above the classes: from a file of pairs, or from WordNet for classes named by wnid (n01440764).
struct Taxonomy {
  std::vector<int64_t> parents;    // (classes + inner nodes): the parent of each; −1 root
  std::vector<std::string> names;  // of the inner nodes
};

// `where`: a CSV file of child,parent names; "wordnet": Debian's data.noun (package wordnet-base); "wordnet:FILE".
// Inner nodes are those above the classes, in the order in which a walk upward from each class first meets
// them. Of several hypernyms the first one counts, because WordNet is not a tree. Throws Error (data) for a cycle or
// for a class that is not in WordNet.
Taxonomy read_taxonomy(const std::string& where, const std::vector<std::string>& classes);

// The journal of an import: the next process uses it to resume a killed import.
//
// A text file in the folder of the import's staged shards: a line for each image, after its bytes are in its shard, and
// one for each finished shard; each line has its checksum. It begins with a fingerprint of the source and the options:
// another fingerprint starts from the beginning. A torn line and all lines after it are ignored. A file lock allows one
// import at a time.
struct JournalImage {
  uint64_t bytes = 0;  // 0: left out
  uint32_t crc = 0;
  std::vector<Oddity> oddities;
};

class ImportJournal {
 public:
  // Makes the folder, or reads the journal that is in it. Throws Error (usage) when another process holds the lock.
  ImportJournal(std::string folder, const std::string& fingerprint);
  ~ImportJournal();
  ImportJournal(const ImportJournal&) = delete;

  const std::string& folder() const { return folder_; }
  const std::vector<JournalImage>& images() const { return images_; }  // of the plan's first ones
  int64_t finished_shards() const { return finished_shards_; }
  bool publishing() const { return publishing_; }

  void forget_from(int64_t image);         // this image and all after it must be done again
  void append(const JournalImage& image);  // held until flush()
  void flush();
  void finish_shard();
  void begin_publishing();  // shards get their names after this; synced to disk when it returns
  void remove();            // removes the folder and everything in it

 private:
  void read(const std::string& header);
  void parse(const std::string& line);
  void write_line(const std::string& text);

  std::string folder_, path_;
  int descriptor_ = -1;
  std::string waiting_;
  uint64_t end_ = 0;  // end of the valid part of the file
  std::vector<JournalImage> images_;
  std::vector<uint64_t> begins_;  // where each image's line begins
  int64_t finished_shards_ = 0;
  bool publishing_ = false;
};

}  // namespace pal::data
