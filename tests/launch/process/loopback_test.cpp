// loopback_test: a child that listens on every address is kept to this host, also when it begins to listen late.
#include "launch/process/loopback.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace pal::launch {
namespace {

int listen_everywhere() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  return bind(listener, reinterpret_cast<sockaddr*>(&any), sizeof(any)) == 0 && listen(listener, 1) == 0 ? listener
                                                                                                         : -1;
}

std::string device_of(int listener) {
  char name[16] = {};
  socklen_t size = sizeof(name);
  return getsockopt(listener, SOL_SOCKET, SO_BINDTODEVICE, name, &size) == 0 ? std::string(name) : "?";
}

// Whether the listener is bound to the loopback device within a minute.
bool is_kept(int listener) {
  for (int tenth = 0; tenth < 600; ++tenth, usleep(100'000)) {
    if (device_of(listener) == "lo") return true;
  }
  return false;
}

TEST(LoopbackOnly, AListenerThatAppearsAtAnyTimeIsKeptToThisHost) {
  const int own = listen_everywhere();
  ASSERT_GE(own, 0);
  if (keep_to_loopback(getpid()) == 0) GTEST_SKIP() << "skipped: this system does not let a process be looked at";
  EXPECT_EQ(device_of(own), "lo");
  close(own);
  const pid_t child = fork();
  if (child == 0) {
    sleep(6);  // a loaded machine
    const int first = listen_everywhere();
    bool kept = is_kept(first);
    const int second = listen_everywhere();  // after the first was seen
    kept = is_kept(second) && kept;
    _exit(kept ? 0 : 1);
  }
  int status = 0;
  {
    const LoopbackOnly watch(child);
    ASSERT_EQ(waitpid(child, &status, 0), child);
  }
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace pal::launch
