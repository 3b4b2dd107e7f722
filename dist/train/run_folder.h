// run_folder: the folder of a run: made, claimed by one job, and refused when it holds a run of another config.
#pragma once

#include <optional>
#include <string>

#include "core/config/config.h"

namespace pal::dist {

enum class Resume { automatic, never };

// The lock of a run folder, held for a scope: one job writes there. Throws Error (usage) when another one does.
class RunLock {
 public:
  explicit RunLock(const std::string& run_dir);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int file_ = -1;
};

// Held by rank 0 as long as the run writes there. A second job on the same folder is refused.
class RunFolder {
 public:
  // Makes the folder and writes config.yaml, or compares with the one that stands there. Throws Error (usage) with one
  // sentence: not writable, of another config (names the keys), in use, or not empty with Resume::never.
  RunFolder(const std::string& path, const config::Config& config, Resume resume);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::optional<RunLock> lock_;
};

}  // namespace pal::dist
