// file_handle: a POSIX file: positioned reads and writes, sync, atomic publication; errors are sentences.
//
// Thread: read_at and write_at take a position, so several threads may use one handle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace pal::io {

enum class Content { discard, keep };  // of a file that is there already

class FileHandle {
 public:
  FileHandle() = default;
  FileHandle(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}  // takes it over
  static FileHandle open_for_reading(const std::string& path);
  // Errors name `shown_as`. A link of that name is refused: it may lead to another file.
  static FileHandle create(const std::string& path, const std::string& shown_as, Content content = Content::discard);
  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&& other) noexcept;
  ~FileHandle();

  const std::string& path() const { return path_; }
  uint64_t size() const;
  // Reads exactly `bytes` bytes; false when the file ends earlier.
  bool read_at(uint64_t offset, void* data, size_t bytes) const;
  void will_read(uint64_t offset, uint64_t bytes) const;  // allows the system to read this ahead
  void forget_cached() const;  // drops the page cache, so that the next read comes from the disk
  void write_at(uint64_t offset, const void* data, size_t bytes);
  void start_sync(uint64_t offset,
                  uint64_t bytes);  // starts writing, so that a later sync() waits less
  void sync();                      // to the disk
  void truncate(uint64_t bytes);

 private:
  int descriptor_ = -1;
  std::string path_;
};

// A temporary file beside `target`. The destructor removes it unless it was published.
class PartialFile {
 public:
  explicit PartialFile(std::string target);  // creates the empty file; throws when the place is not writable
  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  const std::string& target() const { return target_; }
  const std::string& path() const { return path_; }
  // Renames to the target, replacing it, and syncs the folder: a reader sees the old file or the new, never a part.
  void publish();

 private:
  std::string target_, path_;  // path_ empty: nothing to remove
};

}  // namespace pal::io
