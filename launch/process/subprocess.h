// child: a process of ours that answers lines: its standard input and output are pipes.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace pal::launch {

enum class ChildOutput { pipe, inherit };

class Child {
 public:
  explicit Child(const std::vector<std::string>& command, ChildOutput output = ChildOutput::pipe);
  ~Child();  // ends it (TERM, then KILL) if it still runs
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

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
