// program: places, for errors.
#include "tests/simgpu/program.h"

namespace simgpu {
namespace {

std::string file_and_line(const Program& program, int file, int line) {
  const auto found = program.files.find(file);
  return (found == program.files.end() ? "file " + std::to_string(file) : found->second) + ":" + std::to_string(line);
}

}  // namespace

std::string source_of(const Program& program, const Instruction& in) {
  if (in.location >= program.locations.size()) return {};
  const ptx::Location& at = program.locations[in.location];
  if (at.file == 0) return {};
  std::string text = file_and_line(program, at.file, at.line);
  if (at.outer_file != 0) text += " (inlined at " + file_and_line(program, at.outer_file, at.outer_line) + ")";
  return text;
}

std::string quote(const Program& program, int line) {
  const std::string& text = *program.text;
  size_t begin = 0;
  for (int i = 1; i < line && begin != std::string::npos; ++i) {
    begin = text.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (begin == std::string::npos) return {};
  begin = text.find_first_not_of(" \t", begin);
  const size_t end = text.find_first_of("\r\n", begin);
  return text.substr(begin, end - begin);
}

}  // namespace simgpu
