// crash_guard: a sentence and exit code 3 where a library crashes on a file of a stranger.
//
// HDF5 1.10 follows offsets and sizes of damaged metadata without checking all of them. What it then did to the memory
// is unknown, so the process ends at once.
#pragma once

#include <string>

namespace pal::io {

// While one lives, a signal of a crash on this thread (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) prints that `library`
// crashed on `path`, and ends the process. Of nested guards the outermost counts. `path` outlives the guard.
// Thread: any; crashes of threads without a guard end as before.
class CrashGuard {
 public:
  CrashGuard(const char* library, const std::string& path);
  ~CrashGuard();
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;

 private:
  const bool outermost_;
};

}  // namespace pal::io
