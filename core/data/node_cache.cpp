#include "core/data/node_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/data/dataset.h"
#include "core/io/crc32c.h"
#include "core/io/file_handle.h"
#include "core/io/files.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCopyBlock = 4 << 20;
constexpr int kCopyThreads = 4;  // one stream does not fill a parallel file system

struct Source {
  std::string path, name;
  uint64_t bytes = 0;
};

// The sources, and the folder of their copies.
std::vector<Source> list_sources(const std::string& pattern, std::string& folder) {
  std::vector<Source> sources;
  std::set<std::string> names;
  uint32_t print[2] = {};
  for (const std::string& file : dataset_files(pattern)) {
    struct stat status {};
    PAL_DATA_CHECK(::stat(file.c_str(), &status) == 0, "a shard cannot be read", file,
                   "check the path and its permissions");
    const fs::path path = fs::absolute(file);
    sources.push_back({path.string(), path.filename().string(), static_cast<uint64_t>(status.st_size)});
    PAL_DATA_CHECK(names.insert(sources.back().name).second,
                   "two shards have the same name, so data.stage cannot hold both", sources.back().name,
                   "rename one of them, or leave data.stage empty");
    const std::string facts = path.string() + " " + std::to_string(status.st_size) + " " +
                              std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec) +
                              "\n";
    print[0] = io::crc32c(facts.data(), facts.size(), print[0]);
    print[1] = io::crc32c(facts.data(), facts.size(), print[1] ^ 0x9E3779B9u);
  }
  char name[24];
  std::snprintf(name, sizeof(name), "pal-%08x%08x", print[0], print[1]);
  folder = (fs::path(folder) / name).string();
  return sources;
}

// The checksum of a whole file, each block also given to `take`.
template <class F>
uint32_t file_crc(const io::FileHandle& file, uint64_t bytes, const F& take) {
  std::vector<char> block(kCopyBlock);
  uint32_t crc = 0;
  for (uint64_t at = 0; at < bytes; at += block.size()) {
    const size_t n = std::min<uint64_t>(block.size(), bytes - at);
    PAL_DATA_CHECK(file.read_at(at, block.data(), n), "a file became shorter while it was read", file.path(),
                   "copy or import it again");
    crc = io::crc32c(block.data(), n, crc);
    take(at, block.data(), n);
  }
  return crc;
}

uint32_t file_crc(const std::string& path, uint64_t bytes) {
  const io::FileHandle file = io::FileHandle::open_for_reading(path);
  return file.size() == bytes ? file_crc(file, bytes, [](uint64_t, const char*, size_t) {}) : 0;
}

std::string checksum_text(uint64_t bytes, uint32_t crc) {
  return std::to_string(bytes) + " bytes, crc32c " + std::to_string(crc) + "\n";
}

bool is_complete(const Source& source, const std::string& copy) {
  if (!fs::exists(copy) || !fs::exists(copy + ".crc32c")) return false;
  return fs::file_size(copy) == source.bytes &&
         io::read_whole_file(copy + ".crc32c") == checksum_text(source.bytes, file_crc(copy, source.bytes));
}

void copy_shard(const Source& source, const std::string& copy) {
  io::PartialFile partial(copy);
  const io::FileHandle from = io::FileHandle::open_for_reading(source.path);
  io::FileHandle to = io::FileHandle::create(partial.path(), copy);
  const uint32_t crc =
      file_crc(from, source.bytes, [&](uint64_t at, const char* data, size_t n) { to.write_at(at, data, n); });
  to.sync();
  to.forget_cached();  // so that the comparison reads from the disk
  const uint32_t read_back = file_crc(partial.path(), source.bytes);
  PAL_DATA_CHECK(read_back == crc, "the copy differs from " + source.path + "; its CRC32C is {}", read_back,
                 "the local disk is faulty: set data.stage to another folder, or leave it empty");
  io::write_file_atomically(copy + ".crc32c", checksum_text(source.bytes, crc));
  partial.publish();
}

void copy_all(const std::vector<Source>& sources, const std::string& folder, NodeCacheReport& report) {
  fs::create_directories(folder);
  std::vector<Source> missing;
  uint64_t needed = 0;
  for (const Source& source : sources) {
    report.bytes += static_cast<int64_t>(source.bytes);
    if (is_complete(source, folder + "/" + source.name)) continue;
    missing.push_back(source);
    needed += source.bytes;
  }
  report.copied = static_cast<int64_t>(missing.size());
  const uint64_t room = fs::space(folder).available;
  PAL_CHECK(needed <= room, "data.stage needs " + std::to_string(needed >> 20) + " MB, but {} MB are free", room >> 20,
            "make room in " + folder + ", or leave data.stage empty");
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    for (size_t k = next++; k < missing.size(); k = next++) {
      try {
        copy_shard(missing[k], folder + "/" + missing[k].name);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next = missing.size();
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < std::min<int>(kCopyThreads, static_cast<int>(missing.size())); ++i) helpers.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace

NodeCacheReport cache_on_node(const std::string& pattern, const std::string& folder, comm::Comm& node) {
  NodeCacheReport report;
  report.data = folder;
  const std::vector<Source> sources = list_sources(pattern, report.data);
  report.files = static_cast<int64_t>(sources.size());
  if (node.rank() == 0) copy_all(sources, report.data, report);
  node.barrier();
  return report;
}

}  // namespace pal::data
