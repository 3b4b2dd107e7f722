// import: other formats to shards of ours.
//
// An importer writes the training split to `out` and the test split beside it (x.h5 and x-test.h5). All of it is
// written and on the disk before the first file gets its name; a failure leaves what was there before.
// Images keep their order; the same source makes the same bytes.
// To add a format: one file with one function here, one line in `pal data import`, one test.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pal {

enum class Overwrite { refuse, replace };

struct ImportOptions {
  std::string source;                 // a folder
  std::string out;                    // x.h5
  Overwrite overwrite = Overwrite::refuse;
  int shards = 1;                     // per split; more than one: x-00000-of-00004.h5, …
  std::vector<std::string> classes;   // names in the order of the labels; empty: the format's own
  std::function<void(int64_t done, int64_t total)> progress;   // called now and then; may throw to stop
};

struct ImportedSplit {
  std::string name;                   // train, test
  std::vector<std::string> files;
  int64_t samples = 0;
  int64_t image_bytes = 0;
};

struct ImportReport {
  std::vector<ImportedSplit> splits;
  std::vector<std::string> classes;
};

// MNIST's IDX files, plain or .gz: {train,t10k}-{images-idx3,labels-idx1}-ubyte.
ImportReport import_idx(const ImportOptions& options);
// The binary version of CIFAR-10 (data_batch_{1..5}.bin, test_batch.bin, batches.meta.txt) or of CIFAR-100 ({train,test}.bin,
// {fine,coarse}_label_names.txt; the coarse labels become the parents of the classes).
ImportReport import_cifar10(const ImportOptions& options);
ImportReport import_cifar100(const ImportOptions& options);

}  // namespace pal
