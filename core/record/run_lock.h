// run_lock: the lock of a run folder, held for a scope: one job at a time writes there.
#pragma once

#include <sys/stat.h>

#include <string>

namespace pal::record {

class RunLock {
 public:
  // Throws Error (usage) when another job has it, or when the folder cannot be written.
  explicit RunLock(const std::string& run_dir);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // Throws Error (data) when the folder was moved or removed, or its lock file removed or replaced, since the start:
  // what is written there now may be lost, or another job's.
  void check() const;
  // Whether a job holds the lock of the folder, as far as this host sees it.
  static bool held(const std::string& run_dir);

 private:
  const std::string run_dir_;
  int file_ = -1;
  struct stat folder_ {};
};

}  // namespace pal::record
