#include "dist/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/io/files.h"
#include "kernels/base/error.h"

namespace pal::dist {
namespace fs = std::filesystem;

RunLock::RunLock(const std::string& run_dir) {
  const std::string file = run_dir + "/lock";
  file_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) file_ = open(file.c_str(), O_RDONLY | O_CLOEXEC);  // somebody else's folder
  PAL_CHECK(file_ >= 0, "cannot write in the run folder " + run_dir, std::strerror(errno),
            "choose another with --run-dir");
  // File systems without locks (ENOLCK, EOPNOTSUPP) let the run go on.
  if (flock(file_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  close(file_);
  PAL_CHECK(false, "another job is writing to the run folder", run_dir,
            "wait for it, or choose another with --run-dir");
}

RunLock::~RunLock() { close(file_); }

RunFolder::RunFolder(const std::string& path, const config::Config& config, Resume resume) : path_(path) {
  std::error_code error;
  fs::create_directories(path, error);
  PAL_CHECK(!error && fs::is_directory(path), "cannot make the run folder " + path, error.message(),
            "choose another with --run-dir");
  lock_.emplace(path);
  const std::string file = path + "/config.yaml";
  if (fs::exists(file)) {
    PAL_CHECK(resume != Resume::never, "the run folder already holds a run", path,
              "choose another with --run-dir, remove it, or leave out --resume never");
    std::string keys;
    for (const std::string& key : config::Config::load_resolved(file).differing_keys(config))
      keys += (keys.empty() ? "" : ", ") + key;
    PAL_CHECK(keys.empty(), "the run folder " + path + " holds a run of another config; different keys", keys,
              "choose another with --run-dir");
  }
  io::write_file_atomically(file, config.dump());
}

}  // namespace pal::dist
