// import: converts data sets of other formats into shards.
//
// An importer writes the training split to `out` and the test split beside it (x.h5 and x-test.h5). All files are
// written and synced before the first one gets its name; a failure leaves the old files untouched.
// Images keep their order; the same source makes the same bytes, for any number of threads.
// For formats that hold image files (folder, images, csv, webdataset, h5), x.h5.importing keeps the finished part until
// the end: the same call resumes a killed import.
// To add a format: one file with one function here, one line in `pal data import`, one test.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pal::data {

enum class Overwrite { refuse, replace };
enum class StoreAs {
  automatic,  // raw when all are PNG files of one size, jpeg otherwise
  jpeg,
  raw,
};

struct ImportOptions {
  std::string source;  // a folder; or the file that the format names
  std::string out;     // x.h5
  Overwrite overwrite = Overwrite::refuse;
  std::optional<int> shards;         // per split; more than one: x-00000-of-00004.h5, …; not given: of near 2 GB
  std::vector<std::string> classes;  // names in the order of the labels; empty: the format's own
  // Called regularly, with total 0 while the files are listed; may throw to stop the import.
  std::function<void(int64_t done, int64_t total)> progress;

  // Of image files:
  int threads = 1;
  StoreAs store = StoreAs::automatic;
  int32_t resize_shorter = 0;  // 0: as they are
  int quality = 95;
  std::string labels;                     // a CSV file: name, label
  std::string path_column, label_column;  // columns of the CSV file of labels, else of the source; "": the usual ones
  std::string parents;                    // a file: child, parent; "wordnet" or "wordnet:FILE" for wnids
  double test_fraction = 0;               // of the images of each class: the test split, drawn by the seed; 0: none
  std::string groups;                     // FILE:COLUMN; images of one value are in one split
  uint64_t split_seed = 0;
};

struct ImportedSplit {
  std::string name;  // train, test
  std::string data;  // x.h5, also for its shards: what to open
  std::vector<std::string> files;
  int64_t samples = 0;
  int64_t image_bytes = 0;
};

// A property that some images share.
struct OddCount {
  std::string kind, treatment;  // treatment: kept, converted, left out
  int64_t images = 0;
  std::string example;  // the id of the first one
};

struct ImportReport {
  std::vector<ImportedSplit> splits;
  std::vector<std::string> classes;
  std::vector<OddCount> odd;               // left out first, then by kind
  std::map<std::string, int64_t> ignored;  // files that are not images, by extension
  std::vector<std::string> notes;          // warnings about what may be a mistake
  std::string quarantine;                  // the file that lists the skipped images; empty: none
  int64_t left_out = 0;
  int64_t source_bytes = 0;
  int64_t resumed = 0;  // samples that an earlier, interrupted import had done
};

// MNIST's IDX files, plain or .gz: {train,t10k}-{images-idx3,labels-idx1}-ubyte.
ImportReport import_idx(const ImportOptions& options);
// The binary version of CIFAR-10 (data_batch_{1..5}.bin, test_batch.bin, batches.meta.txt) or of CIFAR-100
// ({train,test}.bin, {fine,coarse}_label_names.txt; the coarse labels become the parents of the classes).
ImportReport import_cifar10(const ImportOptions& options);
ImportReport import_cifar100(const ImportOptions& options);
// SOURCE/class/…/image; with SOURCE/train and SOURCE/test (or val) both splits. Images outside of class folders have no
// label.
ImportReport import_folder(const ImportOptions& options);
// Images without labels: all below a folder, or those that a text file lists, one path a line.
ImportReport import_flat(const ImportOptions& options);
// A manifest: path, label, anything.
ImportReport import_csv(const ImportOptions& options);
// Tar files of samples: key.jpg, key.cls, …
ImportReport import_webdataset(const ImportOptions& options);
// HDF5 files of other libraries: a group for each class with an encoded image in each data set, or encoded_images and
// targets.
ImportReport import_h5(const ImportOptions& options);

// The files below a folder that have an image's name, by path from the folder, sorted: what import_flat reads.
struct FoundImage {
  std::string id;
  uint64_t bytes = 0;
  int64_t changed = 0;  // time of the last change
};
std::vector<FoundImage> find_images(const std::string& folder);

}  // namespace pal::data
