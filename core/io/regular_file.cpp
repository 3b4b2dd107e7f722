#include "core/io/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#include "kernels/base/error.h"

namespace pal::io {
namespace {

[[noreturn]] void fail_read(const std::string& path, int error) {
  throw Error(Exit::data, "cannot read " + path + ": " + std::strerror(error) + "; check the path and its permissions");
}

// Bytes that can be allocated without swapping; infinite where the system does not say.
double free_memory() {
  std::ifstream info("/proc/meminfo");
  std::string name, unit;
  for (double kilobytes = 0; info >> name >> kilobytes; std::getline(info, unit)) {
    if (name == "MemAvailable:") return 1024 * kilobytes;
  }
  return std::numeric_limits<double>::infinity();
}

struct OpenFile {
  explicit OpenFile(const std::string& path) : descriptor(open_regular_file(path)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { close(descriptor); }
  const int descriptor;
};

}  // namespace

int open_regular_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // a pipe without a writer does not block
  if (file < 0) fail_read(path, errno);
  struct stat info {};
  const int error = fstat(file, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
  if (error == 0 && S_ISREG(info.st_mode)) return file;
  close(file);
  if (error != 0) fail_read(path, error);
  throw Error(Exit::data, "cannot read " + path + ": it is a pipe, a socket or a device; give a regular file");
}

void check_fits_memory(const std::string& path, double bytes) {
  constexpr double kSmall = 1 << 26;  // not worth a look at the memory
  if (bytes <= kSmall) return;
  const double free = free_memory();
  PAL_DATA_CHECK(bytes <= free, path + " needs more memory than is free", fmt::format("{:.1f} GB", bytes / 1e9),
                 fmt::format("{:.1f} GB are free: divide the file, or use a machine with more memory", free / 1e9));
}

std::string read_regular_file(const std::string& path, uint64_t most) {
  const OpenFile file(path);
  std::string content;
  const auto check_size = [&](uint64_t bytes) {
    PAL_DATA_CHECK(bytes <= most, path + " has more than {} bytes", most, "divide it, or remove it");
  };
  struct stat info {};
  if (fstat(file.descriptor, &info) == 0 && info.st_size > 0) {
    check_size(static_cast<uint64_t>(info.st_size));
    check_fits_memory(path, static_cast<double>(info.st_size));
    content.reserve(static_cast<size_t>(info.st_size));
  }
  char buffer[1 << 16];
  ssize_t got = 0;
  while ((got = read(file.descriptor, buffer, sizeof(buffer))) != 0) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_read(path, errno);
    content.append(buffer, static_cast<size_t>(got));
    check_size(content.size());  // the file may grow while it is read
  }
  return content;
}

}  // namespace pal::io
