#include "core/io/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/io/regular_file.h"
#include "kernels/base/error.h"

namespace pal::io {
namespace {

// What a user can do about it.
std::string advice(int error) {
  if (error == ENOSPC || error == EDQUOT) return "free some space there, or choose another folder";
  if (error == EACCES || error == EPERM || error == EROFS) return "choose a folder you may write to";
  if (error == ENOENT || error == ENOTDIR) return "check that the folder exists";
  return "check the disk, or choose another folder";
}

[[noreturn]] void fail_write(const std::string& path, Exit code = Exit::usage) {
  const int error = errno;
  throw Error(code, "cannot write " + path + ": " + std::strerror(error) + "; " + advice(error));
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

}  // namespace

std::string read_whole_file(const std::string& path) { return read_regular_file(path, UINT64_MAX); }

FileWriter::FileWriter(const std::string& path) : path_(path) {
  // A file of its own: in a folder that others may write to, the name may be a link to another file. A device stays.
  struct stat old {};
  const bool device = lstat(path.c_str(), &old) == 0 && !S_ISREG(old.st_mode) && !S_ISLNK(old.st_mode);
  if (!device) unlink(path.c_str());
  file_ = open(path.c_str(), O_WRONLY | O_CLOEXEC | (device ? 0 : O_CREAT | O_EXCL | O_NOFOLLOW), 0644);
  if (file_ < 0) fail_write(path);
}

FileWriter::~FileWriter() {
  if (file_ >= 0) close(file_);
}

void FileWriter::write(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = ::write(file_, from, std::min<size_t>(bytes, size_t{1} << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_write(path_);
    from += done;
    bytes -= static_cast<size_t>(done);
  }
}

void FileWriter::finish() {
  // Some file systems report a full disk only here.
  const bool synced = fsync(file_) == 0;
  const int error = errno;
  const bool closed = close(file_) == 0;
  file_ = -1;
  if (!synced) errno = error;
  if (!synced || !closed) fail_write(path_);
}

void sync_folder(const std::string& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) fail_write(folder);
  // Network file systems may refuse to sync a folder (EINVAL); the server makes their renames durable.
  const bool synced = fsync(file) == 0 || errno == EINVAL;
  const int error = errno;
  close(file);
  errno = error;
  if (!synced) fail_write(folder);
}

void rename_path(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail_write(to);
}

bool exchange_paths(const std::string& a, const std::string& b) {
  return renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

void write_file_atomically(const std::string& path, std::string_view content) {
  const std::string temporary = path + ".tmp" + std::to_string(getpid());
  try {
    FileWriter file(temporary);
    file.write(content.data(), content.size());
    file.finish();
    rename_path(temporary, path);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  sync_folder(folder_of(path));
}

// Files of a run: a failure is an Error (data).
bool put_new_file(const std::string& path, std::string_view content, unsigned rights) {
  std::string fresh = path + ".new-XXXXXX";
  const int file = mkstemp(fresh.data());
  if (file < 0) fail_write(path, Exit::data);
  const bool written = ::write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
                       fchmod(file, rights) == 0 && fsync(file) == 0;
  const bool put = written && link(fresh.c_str(), path.c_str()) == 0;
  const int error = errno;
  close(file);
  unlink(fresh.c_str());
  errno = error;
  if (!put && (!written || error != EEXIST)) fail_write(path, Exit::data);
  if (put) sync_folder(folder_of(path));
  return put;
}

}  // namespace pal::io
