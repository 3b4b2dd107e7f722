// files: reading and writing whole files so that a crash leaves the old one or the new one, never half of one.
//
// Failures throw Error with one sentence: the file, the system's message, what to do. Reading fails as data (exit 3),
// writing as usage (exit 2): the place was the user's choice.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pal::io {

std::string read_whole_file(const std::string& path);

// Temporary file beside it, fsync, rename, fsync of the folder.
void write_file_atomically(const std::string& path, std::string_view content);

// Creates the file unless it exists; returns whether it did. The file never exists without its content, even if the
// writer is killed, and of two writers exactly one creates it. `mode` as for chmod.
bool put_new_file(const std::string& path, std::string_view content, unsigned rights = 0644);

// Syncs a folder, so that renames and new names in it survive a power cut.
void sync_folder(const std::string& folder);

// rename_path throws with the system's message. exchange_paths swaps two names atomically; false when the file system
// cannot.
void rename_path(const std::string& from, const std::string& to);
bool exchange_paths(const std::string& a, const std::string& b);

// FileWriter: a new file (an old one of that name is removed), written from front to back.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(const void* data, size_t bytes);
  void finish();  // fsync and close; without it the file may be incomplete

 private:
  const std::string path_;
  int file_ = -1;
};

}  // namespace pal::io
