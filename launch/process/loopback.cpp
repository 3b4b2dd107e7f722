#include "launch/process/loopback.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>

namespace pal::launch {
namespace {

bool option_is(int socket, int name, int wanted) {
  int value = 0;
  socklen_t size = sizeof(value);
  return getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 && value == wanted;
}

bool listens_everywhere(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (!option_is(socket, SO_TYPE, SOCK_STREAM) || !option_is(socket, SO_ACCEPTCONN, 1) ||
      getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return false;
  if (address.ss_family == AF_INET)
    return reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr == htonl(INADDR_ANY);
  return address.ss_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, &in6addr_any, sizeof(in6addr_any)) == 0;
}

}  // namespace

int keep_to_loopback(pid_t pid) {
  namespace fs = std::filesystem;
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return 0;
  int bound = 0;
  std::error_code error;
  for (fs::directory_iterator it("/proc/" + std::to_string(pid) + "/fd", error), end; !error && it != end;
       it.increment(error)) {
    if (!fs::read_symlink(it->path(), error).string().starts_with("socket:")) {
      error.clear();  // closed meanwhile
      continue;
    }
    const int socket = static_cast<int>(syscall(SYS_pidfd_getfd, process, std::atoi(it->path().filename().c_str()), 0));
    if (socket < 0) continue;
    if (listens_everywhere(socket) && setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, "lo", 2) == 0) ++bound;
    close(socket);
  }
  close(process);
  return bound;
}

LoopbackOnly::LoopbackOnly(pid_t pid)
    : thread_([pid](const std::stop_token& stop) {
        using std::chrono::milliseconds;
        std::mutex mutex;
        std::condition_variable_any never;
        std::unique_lock<std::mutex> lock(mutex);
        int bound = 0;
        for (int look = 0; !stop.stop_requested(); ++look) {
          bound += keep_to_loopback(pid);
          const bool starting = bound == 0 && look < 200;
          never.wait_for(lock, stop, milliseconds(starting ? 50 : 1000), [] { return false; });
        }
      }) {}

}  // namespace pal::launch
