#include "core/record/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/base/error.h"

namespace pal::record {
namespace {

// Whether `path` is still this file or folder.
bool still(const std::string& path, const struct stat& of) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 && found.st_dev == of.st_dev && found.st_ino == of.st_ino;
}

}  // namespace

RunLock::RunLock(const std::string& run_dir) : run_dir_(run_dir) {
  const std::string file = run_dir + "/lock";
  file_ = open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file_ < 0)
    file_ = open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);  // a folder of another user
  PAL_CHECK(file_ >= 0, "cannot write in the run folder " + run_dir, std::strerror(errno),
            "choose another with --run-dir");
  stat(run_dir.c_str(), &folder_);
  // On a file system without locks (ENOLCK, EOPNOTSUPP) the run continues unlocked. held() of another process has the
  // lock for an instant, so one failure is not the answer.
  for (int attempt = 0; attempt < 5; ++attempt) {
    if (flock(file_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    usleep(20'000);
  }
  close(file_);
  PAL_CHECK(false, "another job is writing to the run folder", run_dir,
            "wait for it, or choose another with --run-dir");
}

RunLock::~RunLock() { close(file_); }

void RunLock::check() const {
  struct stat held {};
  fstat(file_, &held);
  if (still(run_dir_ + "/lock", held)) return;
  PAL_DATA_CHECK(still(run_dir_, folder_), "the run folder was moved or removed during the run", run_dir_,
                 "give the same command with the folder's new name as --run-dir; it resumes from the last checkpoint");
  PAL_DATA_CHECK(false, "the lock of the run folder was removed during the run, so another job may write there",
                 run_dir_ + "/lock", "see that no other job does, then give the same command to resume");
}

bool RunLock::held(const std::string& run_dir) {
  const int file = open((run_dir + "/lock").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  const bool held = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  return held;
}

}  // namespace pal::record
