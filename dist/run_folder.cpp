#include "dist/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/io/files.h"
#include "kernels/base/error.h"

namespace pal {
namespace fs = std::filesystem;

RunFolder::RunFolder(const std::string& path, const Config& config, Resume resume) : path_(path) {
  std::error_code error;
  fs::create_directories(path, error);
  PAL_CHECK(!error && fs::is_directory(path), "cannot make the run folder " + path, error.message(),
            "choose another with --run-dir");
  lock_ = open((path + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  PAL_CHECK(lock_ >= 0, "cannot write in the run folder " + path, std::strerror(errno), "choose another with --run-dir");
  // File systems without locks (ENOLCK, EOPNOTSUPP) let the run go on.
  PAL_CHECK(flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK, "another job is writing to the run folder", path,
            "wait for it, or choose another with --run-dir");

  const std::string file = path + "/config.yaml";
  if (fs::exists(file)) {
    PAL_CHECK(resume != Resume::never, "the run folder already holds a run", path,
              "choose another with --run-dir, remove it, or leave out --resume never");
    std::string keys;
    for (const std::string& key : Config::load_resolved(file).differing_keys(config)) keys += (keys.empty() ? "" : ", ") + key;
    PAL_CHECK(keys.empty(), "the run folder " + path + " holds a run of another config; different keys", keys,
              "choose another with --run-dir");
  }
  write_file_atomically(file, config.dump());
}

RunFolder::~RunFolder() {
  if (lock_ >= 0) close(lock_);
}

}  // namespace pal
