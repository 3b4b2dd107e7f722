// image_folder: a folder of pictures as a data set: which of its sub-folders are classes, and its import, made once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/process/subprocess.h"

namespace pal::launch {

struct FolderOptions {
  std::string labels = {};  // a CSV file, or FILE:COLUMN; "none": sub-folders are not classes; "": they are
  std::string groups = {};  // FILE:COLUMN; images of one value stay in one split
};

struct ImageFolder {
  std::string path;                // what is imported: the folder, or the only folder in it
  int64_t images = 0;              // files with an image's name
  bool labeled = false;            // some of them have a label
  std::vector<std::string> words;  // arguments of `pal data import` without the name of the output
  std::vector<std::string> notes;  // sentences: what was decided
  std::string fingerprint;         // of the names, sizes and times of the files
};
// A folder that is neither a run folder nor one of shards.
bool is_picture_folder(const std::string& path);
// Throws Error: usage for what is no folder, data for one that is missing, without images, or with a CSV file that does
// not fit.
ImageFolder look_at_folder(const std::string& folder, const FolderOptions& options);

// Prints the command as a user would type it, and runs it.
CommandEnd run_pal(const std::string& program, const std::vector<std::string>& words, const std::string& log = "");

// What to do with an earlier import to the same file when the pictures have changed since.
enum class Changed { import_again, keep_import };
// Imports the folder to `out` (and its test split beside it), unless that was done before. The file x.source beside
// x.h5 holds the command and the fingerprint. Throws Error (usage) for keep_import when the earlier import was another
// command.
struct ImportEnd {
  int code = 0;        // of the import
  bool again = false;  // it was imported by this call
};
ImportEnd import_once(const std::string& program, const ImageFolder& folder, const std::string& out, Changed changed);

}  // namespace pal::launch
