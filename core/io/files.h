// files: reading and writing whole files so that a crash leaves the old one or the new one, never half of one.
//
// Failures throw Error with one sentence: the file, the system's words, what to do. Reading fails as data (exit 3),
// writing as usage (exit 2): the place was the user's choice.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pal::io {

std::string read_whole_file(const std::string& path);

// Temporary file beside it, fsync, rename, fsync of the folder.
void write_file_atomically(const std::string& path, std::string_view content);

// Puts a file there unless there is one: whether it did. It never stands there without its content, wherever its writer is
// killed, and of two writers one comes first. Rights as of chmod.
bool put_new_file(const std::string& path, std::string_view content, unsigned rights = 0644);

// Makes renames and new names in a folder last through a power cut.
void sync_folder(const std::string& folder);

// Renames with the system's words on failure. exchange_paths swaps two names in one go where the file system can; false
// where it cannot.
void rename_path(const std::string& from, const std::string& to);
bool exchange_paths(const std::string& a, const std::string& b);

// FileWriter: a new file (an old one of that name is cut to nothing), written from front to back.
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
