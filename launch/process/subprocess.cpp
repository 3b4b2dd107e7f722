#include "launch/process/subprocess.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/base/error.h"

namespace pal::launch {
namespace {

[[noreturn]] void exec_command(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  std::fprintf(stderr, "error: cannot start %s: %s\n", argv[0], std::strerror(errno));
  _exit(static_cast<int>(Exit::usage));
}

}  // namespace

Subprocess::Subprocess(const std::vector<std::string>& command, SubprocessOutput output) : name_(command.front()) {
  int to[2], from[2];
  PAL_CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0, "a pipe cannot be made", std::strerror(errno),
            "close other programs");
  pid_ = fork();
  PAL_CHECK(pid_ >= 0, "a process cannot be started", std::strerror(errno),
            "close other programs or raise the limit (ulimit -u)");
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(to[0], STDIN_FILENO);
    if (output == SubprocessOutput::pipe) dup2(from[1], STDOUT_FILENO);
    exec_command(command);
  }
  close(to[0]);
  close(from[1]);
  in_ = fdopen(to[1], "w");
  out_ = fdopen(from[0], "r");
}

Subprocess::~Subprocess() {
  if (in_ != nullptr) std::fclose(in_);
  if (out_ != nullptr) std::fclose(out_);
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  for (int tenth = 0; tenth < 30; ++tenth) {
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) return;
    usleep(100'000);
  }
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Subprocess::write_line(const std::string& line) {
  std::fprintf(in_, "%s\n", line.c_str());
  std::fflush(in_);
}

std::string Subprocess::read_line() {
  std::string line;
  for (int c = std::fgetc(out_); c != EOF; c = std::fgetc(out_)) {
    if (c == '\n') return line;
    line += static_cast<char>(c);
  }
  throw Error(Exit::check_failed, name_ + " ended before it answered; its output is above");
}

int Subprocess::wait() {
  std::fclose(in_);
  in_ = nullptr;
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_command(const std::vector<std::string>& command, const BlockedSignals& signals, const Forwarding& forwarding) {
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  PAL_CHECK(child >= 0, "a process cannot be started", std::strerror(errno),
            "close other programs or raise the limit (ulimit -u)");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);  // the parent died before prctl
    setpgid(0, 0);
    signals.restore();
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0) dup2(null, STDIN_FILENO);
    if (forwarding.in_child) forwarding.in_child();
    exec_command(command);
  }
  if (forwarding.started) forwarding.started(child);
  int status = 0;
  for (;;) {
    const int signal = signals.wait();
    if (signal != SIGCHLD)
      kill(child, forwarding.signal_to_send(signal));
    else if (waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

CommandEnd run_in_foreground(const std::vector<std::string>& command, const std::string& log) {
  const BlockedSignals signals{SIGINT, SIGTERM, SIGHUP, SIGCHLD};
  CommandEnd end;
  const auto to_log = [&] {
    const int file = log.empty() ? -1 : open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
      if (file >= 0) dup2(file, output);
    }
  };
  end.code = run_command(command, signals,
                         {to_log,
                          [&](int signal) {
                            end.stopped_by = signal;
                            return signal == SIGHUP ? SIGTERM : signal;
                          },
                          {}});
  signals.restore();
  return end;
}

}  // namespace pal::launch
