// writer_lease: one writing process, also where file locks do not work: a small file beside what is written, kept alive.
//
// The file says who writes (program, process, host) and is touched every few seconds. Whoever finds one that was touched
// lately, or whose process lives on this host, is refused with a sentence that names it. One whose process is gone, or
// that was not touched for a minute, is taken over. Ages are told by the file system's own clock: hosts may differ.
// Thread: a thread of its own touches the file.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace pal::oracle {

struct LeaseTimes {
  double beat = 5;    // seconds between touches
  double stale = 60;  // untouched for that long: nobody writes any more
};

class WriterLease {
 public:
  // For the file `path`, as path + ".writer". Throws Error (data) when another process holds it.
  explicit WriterLease(const std::string& path, const LeaseTimes& times = {});
  ~WriterLease();  // gives it back
  WriterLease(const WriterLease&) = delete;
  WriterLease& operator=(const WriterLease&) = delete;

  // Throws Error (data) when somebody has taken it over: this process must not write any more.
  void check() const;
  // Who holds the lease of `path` now, as a sentence's subject ("process 17 on host a"); "" when nobody does.
  static std::string holder(const std::string& path, const LeaseTimes& times = {});

 private:
  void beat();

  const std::string file_, content_;
  const LeaseTimes times_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace pal::oracle
