#include "core/io/file_handle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/io/files.h"
#include "core/io/regular_file.h"
#include "kernels/base/error.h"

namespace pal::io {
namespace {

[[noreturn]] void fail_read(const std::string& path) {
  const int error = errno;
  throw Error(Exit::data, path + " cannot be read: " + std::strerror(error) + "; check the path and its permissions");
}

[[noreturn]] void fail_write(const std::string& path) {
  const int error = errno;
  const char* todo = "check the path and its permissions";
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) todo = "make room or choose another place";
  if (error == ENOENT) todo = "create its folder first";
  throw Error(Exit::data, path + " cannot be written: " + std::strerror(error) + "; " + todo);
}

}  // namespace

FileHandle FileHandle::open_for_reading(const std::string& path) { return FileHandle(open_regular_file(path), path); }

FileHandle FileHandle::create(const std::string& path, const std::string& shown_as, Content content) {
  const int descriptor = ::open(
      path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | (content == Content::discard ? O_TRUNC : 0) | O_CLOEXEC, 0666);
  if (descriptor < 0) fail_write(shown_as);
  return FileHandle(descriptor, shown_as);
}

FileHandle::FileHandle(FileHandle&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

FileHandle::~FileHandle() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

uint64_t FileHandle::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail_read(path_);
  return static_cast<uint64_t>(status.st_size);
}

bool FileHandle::read_at(uint64_t offset, void* data, size_t bytes) const {
  auto* p = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::pread(descriptor_, p, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_read(path_);
    if (n == 0) return false;
    p += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

void FileHandle::will_read(uint64_t offset, uint64_t bytes) const {
  ::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                  POSIX_FADV_WILLNEED);  // advice: may fail
}

void FileHandle::forget_cached() const { ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED); }

void FileHandle::write_at(uint64_t offset, const void* data, size_t bytes) {
  const auto* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::pwrite(descriptor_, p, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_write(path_);
    p += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
}

void FileHandle::start_sync(uint64_t offset,
                            uint64_t bytes) {  // a hint: if it is not supported, sync() does all the work
  ::sync_file_range(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
}

void FileHandle::truncate(uint64_t bytes) {
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) fail_write(path_);
}

void FileHandle::sync() {
  if (::fsync(descriptor_) != 0) fail_write(path_);
}

PartialFile::PartialFile(std::string target) : target_(std::move(target)) {
  const std::string stem = target_ + ".partial-" + std::to_string(::getpid()) + "-";
  int descriptor = -1;
  for (int k = 0; descriptor < 0; ++k) {  // a killed process with the same id may have left such files
    path_ = stem + std::to_string(k);
    descriptor = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor < 0 && (errno != EEXIST || k == 1000)) fail_write(target_);
  }
  ::close(descriptor);
}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : target_(std::move(other.target_)), path_(std::exchange(other.path_, std::string())) {}

PartialFile::~PartialFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

void PartialFile::publish() {
  rename_path(path_, target_);
  path_.clear();
  sync_folder((std::filesystem::path(".") / std::filesystem::path(target_).parent_path()).string());
}

}  // namespace pal::io
