// subprocess: a child process that answers line by line; its standard input and output are pipes.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

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

}  // namespace pal::launch
