// data_files: shared by the tests of core/data: whole files as strings, and the error of a call (tests/support.h).
#pragma once

#include <cstddef>
#include <fstream>
#include <string>

#include "tests/support.h"
#include "tests/test_folder.h"

namespace pal::data {

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
}

// Changes one byte in place.
inline void poke(const std::string& path, size_t at, char byte) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

using pal::contains;
using pal::error_of;

}  // namespace pal::data
