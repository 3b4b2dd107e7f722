// output_file: a file that a command writes after long work. The constructor checks before the work that the place can
// be written and has room; a command that fails leaves no file there.
#pragma once

#include <string>
#include <string_view>

#include "core/io/file_handle.h"

namespace pal::launch {

class OutputFile {
 public:
  explicit OutputFile(const std::string& path, uint64_t bytes = 1 << 16);  // bytes: room that must be there
  const std::string& path() const { return part_.path(); }                 // to write to, before publish()
  void publish() { part_.publish(); }
  void write(std::string_view content);  // all of it, and publishes

 private:
  io::PartialFile part_;
};

}  // namespace pal::launch
