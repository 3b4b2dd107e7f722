#include "core/oracle/ledger/writer_lease.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/io/files.h"
#include "kernels/base/error.h"

namespace pal::oracle {
namespace {

std::string lease_host() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

// When the process started, in ticks since the host did; "" when it has ended or cannot be looked at.
std::string process_start(pid_t process) {
  std::string line;
  std::getline(std::ifstream("/proc/" + std::to_string(process) + "/stat"), line);
  // The second field is a name in parentheses that may hold anything; the state is field 3, the start is field 22.
  std::istringstream in(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string state, field;
  in >> state;
  for (int k = 4; k <= 22; ++k) in >> field;
  return !in || state == "Z" || state == "X" ? "" : field;
}

// "host process number start": the number distinguishes two leases of one process, the start two processes that had
// the same id.
std::string make_content() {
  static std::atomic<int64_t> count{0};
  return lease_host() + " " + std::to_string(getpid()) + " " + std::to_string(++count) + " " + process_start(getpid()) +
         "\n";
}

std::string lease_content(const std::string& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return "";
  char text[512];
  const ssize_t got = read(fd, text, sizeof(text));
  close(fd);
  return got > 0 ? std::string(text, static_cast<size_t>(got)) : "";
}

double modified(const struct stat& s) {
  return static_cast<double>(s.st_mtim.tv_sec) + 1e-9 * static_cast<double>(s.st_mtim.tv_nsec);
}

// Seconds since the file was touched, by the clock of its file system: a new file beside it has the current time there.
double age(const std::string& file) {
  struct stat held {
  }, fresh{};
  if (stat(file.c_str(), &held) != 0) return 1e30;
  std::string probe = file + ".clock-XXXXXX";
  const int fd = mkostemp(probe.data(), O_CLOEXEC);
  if (fd < 0) return 0;  // a folder that cannot be written fails soon anyway
  const bool known = fstat(fd, &fresh) == 0;
  close(fd);
  unlink(probe.c_str());
  return known ? modified(fresh) - modified(held) : 0;
}

// Whether the holder has ended: its process on this host does not exist, or the file was not touched for long. A
// process of this host that is suspended touches nothing and has not ended.
bool abandoned(const std::string& file, const std::string& content, const LeaseTimes& times) {
  std::istringstream in(content);
  std::string host, number, start;
  pid_t process = 0;
  in >> host >> process >> number >> start;
  if (host == lease_host() && process > 0) {
    if (kill(process, 0) != 0 && errno == ESRCH) return true;
    if (!start.empty() && process_start(process) == start) return false;
  }
  return age(file) > times.stale;
}

std::string lease_holder(const std::string& content) {
  std::istringstream in(content);
  std::string host, process;
  in >> host >> process;
  return host.empty() ? "another process" : "process " + process + " on host " + host;
}

void refuse_unless(bool free, const std::string& path, const std::string& content) {
  PAL_DATA_CHECK(free, "another process writes " + path, lease_holder(content),
                 "wait for it to end, or stop it; if it has ended, remove " + path + ".writer");
}

}  // namespace

std::string WriterLease::holder(const std::string& path, const LeaseTimes& times) {
  const std::string file = path + ".writer", content = lease_content(file);
  if (content.empty() && access(file.c_str(), F_OK) != 0) return "";
  return abandoned(file, content, times) ? "" : lease_holder(content);
}

void WriterLease::require_free(const std::string& path, const LeaseTimes& times) {
  refuse_unless(holder(path, times).empty(), path, lease_content(path + ".writer"));
}

WriterLease::WriterLease(const std::string& path, const LeaseTimes& times)
    : file_(path + ".writer"), content_(make_content()), times_(times) {
  for (int attempt = 0;; ++attempt) {
    if (io::put_new_file(file_, content_)) break;
    const std::string found = lease_content(file_);
    refuse_unless(attempt < 5 && abandoned(file_, found, times_), path, found);
    // Renamed first: of two processes that take over an abandoned lease, one finds that it renamed the other's new
    // lease.
    const std::string aside = file_ + ".old-" + std::to_string(getpid());
    if (rename(file_.c_str(), aside.c_str()) != 0) continue;
    std::error_code taken;  // a third process may have made its lease meanwhile
    if (lease_content(aside) != found) std::filesystem::create_hard_link(aside, file_, taken);
    unlink(aside.c_str());
  }
  thread_ = std::thread([this] { beat(); });
}

WriterLease::~WriterLease() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
  if (lease_content(file_) == content_) unlink(file_.c_str());
}

void WriterLease::beat() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_.wait_for(lock, std::chrono::duration<double>(times_.beat), [this] { return stopping_; })) {
    if (lease_content(file_) == content_) utimensat(AT_FDCWD, file_.c_str(), nullptr, 0);
  }
}

void WriterLease::check() const {
  const std::string found = lease_content(file_);
  PAL_CHECK_CODE(Exit::lost, found == content_, "another process took over the right to write", lease_holder(found),
                 "start again; what was recorded before is kept");
}

}  // namespace pal::oracle
