// subprocess: child processes: one that answers line by line through pipes, and one that has the terminal until it
// ends.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "launch/process/signals.h"

namespace pal::launch {

enum class SubprocessOutput { pipe, inherit };

class Subprocess {
 public:
  explicit Subprocess(const std::vector<std::string>& command, SubprocessOutput output = SubprocessOutput::pipe);
  ~Subprocess();  // ends it (TERM, then KILL) if it still runs
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  void write_line(const std::string& line);
  std::string read_line();  // throws Error when the process has ended
  int wait();               // closes its input; its exit code

 private:
  std::string name_;
  pid_t pid_ = -1;
  FILE* in_ = nullptr;
  FILE* out_ = nullptr;
};

// Runs a command to its end, with this process's output and no input. It has a process group of its own: Ctrl-C reaches
// this process alone, which forwards it once. It gets a TERM when this process dies.
struct Forwarding {
  std::function<void()> in_child;          // before exec; may be empty
  std::function<int(int)> signal_to_send;  // for one of the signals that arrived
  std::function<void(pid_t)> started;      // in this process, with the child's id; may be empty
};
int run_command(const std::vector<std::string>& command, const BlockedSignals& signals, const Forwarding& forwarding);

struct CommandEnd {
  int code = 0;        // its exit code, or 128 + signal
  int stopped_by = 0;  // the signal that this process received and forwarded, or 0
};
// The same, forwarding INT and TERM, and HUP as TERM. `log`: a file for its output; "": the output of this process.
CommandEnd run_in_foreground(const std::vector<std::string>& command, const std::string& log = "");

}  // namespace pal::launch
