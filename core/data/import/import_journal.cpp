#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

#include "core/data/import/import_internal.h"
#include "core/io/crc32c.h"
#include "core/io/files.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

namespace fs = std::filesystem;

std::string with_checksum(const std::string& text) {
  char crc[16];
  std::snprintf(crc, sizeof crc, "\t%08x\n", io::crc32c(text.data(), text.size()));
  return text + crc;
}

[[noreturn]] void fail_journal(const std::string& path) {
  const int error = errno;
  throw Error(Exit::data, path + " cannot be written: " + std::strerror(error) +
                              "; make room or choose another place, and run it again");
}

}  // namespace

ImportJournal::ImportJournal(std::string folder, const std::string& fingerprint)
    : folder_(std::move(folder)), path_((fs::path(folder_) / "journal").string()) {
  std::error_code failure;
  fs::create_directories(folder_, failure);
  PAL_DATA_CHECK(!failure, folder_ + " cannot be made", failure.message(), "check the path and its permissions");
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_journal(path_);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {  // file systems without locks: continue
    ::close(std::exchange(descriptor_, -1));
    PAL_CHECK(false, "another import is writing to this folder", folder_, "wait for it, or name another output");
  }
  read(with_checksum("pal-import 1 " + fingerprint));
}

ImportJournal::~ImportJournal() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ImportJournal::read(const std::string& header) {
  const std::string text = io::read_whole_file(path_);
  if (text.compare(0, header.size(), header) == 0) {
    end_ = header.size();
    for (size_t next = 0; (next = text.find('\n', end_)) != std::string::npos; end_ = next + 1) {
      const std::string line = text.substr(end_, next + 1 - end_);
      const size_t tab = line.rfind('\t');
      if (tab == std::string::npos || with_checksum(line.substr(0, tab)) != line) break;
      parse(line.substr(0, tab));
    }
  } else {  // another source or other options
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path() != path_) fs::remove_all(entry.path());
    }
    waiting_ = header;
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(end_)) != 0) fail_journal(path_);
  flush();
}

// "i BYTES CRC", then "\tTWHAT" for each oddity, T its treatment; "shard"; "publish".
void ImportJournal::parse(const std::string& line) {
  if (line == "shard") ++finished_shards_;
  if (line == "publish") publishing_ = true;
  if (line.empty() || line[0] != 'i') return;
  JournalImage image;
  std::istringstream parts(line);
  std::string part;
  std::getline(parts, part, '\t');
  unsigned long long bytes = 0;
  unsigned crc = 0;
  std::sscanf(part.c_str(), "i %llu %x", &bytes, &crc);
  image.bytes = bytes;
  image.crc = crc;
  while (std::getline(parts, part, '\t'))
    image.oddities.push_back({static_cast<Treatment>(part[0] - '0'), part.substr(1)});
  begins_.push_back(end_);
  images_.push_back(std::move(image));
}

void ImportJournal::forget_from(int64_t image) {
  PAL_ASSERT(waiting_.empty(), "lines wait to be written");
  end_ = begins_[static_cast<size_t>(image)];
  images_.resize(static_cast<size_t>(image));
  begins_.resize(static_cast<size_t>(image));
  if (::ftruncate(descriptor_, static_cast<off_t>(end_)) != 0) fail_journal(path_);
}

void ImportJournal::write_line(const std::string& text) { waiting_ += with_checksum(text); }

void ImportJournal::append(const JournalImage& image) {
  char begin[64];
  std::snprintf(begin, sizeof begin, "i %llu %08x", static_cast<unsigned long long>(image.bytes), image.crc);
  std::string line = begin;
  for (const Oddity& oddity : image.oddities) {
    std::string what = oddity.what;
    std::replace_if(
        what.begin(), what.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
    line.append("\t").append(std::to_string(static_cast<int>(oddity.treatment))).append(what);
  }
  write_line(line);
}

void ImportJournal::flush() {
  const char* data = waiting_.data();
  size_t left = waiting_.size();
  while (left > 0) {
    const ssize_t n = ::pwrite(descriptor_, data, left, static_cast<off_t>(end_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_journal(path_);
    data += n;
    left -= static_cast<size_t>(n);
    end_ += static_cast<uint64_t>(n);
  }
  waiting_.clear();
}

void ImportJournal::finish_shard() {
  write_line("shard");
  ++finished_shards_;
  flush();
}

void ImportJournal::begin_publishing() {
  if (publishing_) return;
  write_line("publish");
  flush();
  if (::fsync(descriptor_) != 0) fail_journal(path_);
  publishing_ = true;
}

void ImportJournal::remove() {
  std::error_code ignored;  // the import is complete; a remaining folder does no harm
  fs::remove_all(folder_, ignored);
}

}  // namespace pal::data
