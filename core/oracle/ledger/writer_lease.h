// writer_lease: lets one process write, also where file locks do not work: a small file beside what is written.
//
// The file names the host, the process and its start, and is touched every few seconds. A second process is refused
// with a sentence that names the first, while that process lives on this host (suspended or not) or has touched the
// file recently. A lease whose process has ended, or one of another host that is untouched for a minute, is taken over.
// Ages use the file system's clock: those of hosts may differ.
// Thread: a thread of the lease touches the file.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace pal::oracle {

struct LeaseTimes {
  double beat = 5;    // seconds between touches
  double stale = 60;  // untouched for so long: the writer has ended
};

class WriterLease {
 public:
  // For the file `path`, as path + ".writer". Throws Error (data) when another process holds it.
  explicit WriterLease(const std::string& path, const LeaseTimes& times = {});
  ~WriterLease();  // releases it
  WriterLease(const WriterLease&) = delete;
  WriterLease& operator=(const WriterLease&) = delete;

  // Throws Error (lost: a restart continues) when another process has taken it over: this process must not write any
  // more.
  void check() const;
  // The process that holds the lease of `path` now ("process 17 on host a"); "" when there is none.
  static std::string holder(const std::string& path, const LeaseTimes& times = {});
  static void require_free(const std::string& path, const LeaseTimes& times = {});  // Error (data) names the holder

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
