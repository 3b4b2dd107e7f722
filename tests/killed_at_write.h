// killed_at_write: a process that is killed at its first write to a file: after the open, before any byte is written.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace pal {

// Whether the child that does `work` was killed there. To be called while the test has one thread.
template <class Work>
bool killed_at_write(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_files{0, 0}, no_core{0, 0};
    setrlimit(RLIMIT_FSIZE, &no_files);  // the system kills who writes more, by SIGXFSZ
    setrlimit(RLIMIT_CORE, &no_core);
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ;
}

}  // namespace pal
