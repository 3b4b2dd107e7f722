// loopback: keeps the ports of a child process to this host.
#pragma once

#include <sys/types.h>

#include <thread>

namespace pal::launch {

// Binds the TCP sockets at which the child process `pid` listens on every address to the loopback device; returns their
// number. Other hosts then cannot connect. Where the system does not allow it (a container without the right to look at
// a child, Linux before 5.7), the sockets stay as they are.
int keep_to_loopback(pid_t pid);

// Does it again and again until it is destroyed: twenty times a second until the process listens, then once a second.
class LoopbackOnly {
 public:
  explicit LoopbackOnly(pid_t pid);

 private:
  std::jthread thread_;
};

}  // namespace pal::launch
