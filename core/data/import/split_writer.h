// split_writer: the splits that an importer makes: which images, which files, published together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/import/import.h"
#include "core/data/shard_writer.h"

namespace pal::data {

// Where a split goes: x.h5, x-test.h5, x-00000-of-00004.h5, x-test-00000-of-00004.h5. Split "" is as train.
ImportedSplit planned_split(const std::string& out, const std::string& split, int shards);

// Throws Error (usage) for a folder of that name, or for an existing file unless it may be replaced. An import with
// another number of shards is such a file, too: `split.data` would mean both.
void check_outputs(const ImportedSplit& split, Overwrite overwrite);
// Removes the files of an earlier import with another number of shards.
void remove_others(const ImportedSplit& split);

struct PlannedSplit {
  std::string name;  // train, test
  int64_t samples = 0;
};

class SplitWriter {
 public:
  // Throws Error (usage) for a name that is not *.h5, an existing file, or more shards than samples.
  SplitWriter(const ImportOptions& options, std::vector<PlannedSplit> plan);

  // Starts the next split of the plan; call append() once per planned sample after it.
  void begin(const ShardSpec& spec);
  void append(const StoredImage& image);
  // After the last sample of the last split: gives all files their names and returns the report.
  ImportReport publish();

 private:
  const ImportOptions& options_;
  std::vector<PlannedSplit> plan_;
  ImportReport report_;
  ShardSpec spec_;
  std::vector<ShardWriter> writers_;  // of all splits so far; only the last one is unfinished
  int64_t done_ = 0, total_ = 0;
};

// The folder that holds `file`: the source itself, or its sub-folder `usual`, which the archive creates.
std::string source_folder(const std::string& source, const std::string& usual, const std::string& file);

}  // namespace pal::data
