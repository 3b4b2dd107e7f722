// npy: reads files of numpy.save: magic, version, length of the header, a Python literal, raw bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pal::io {

struct Npy {
  std::string type;  // "<f4"
  std::vector<int64_t> shape;
  std::string bytes;  // of the whole file
  size_t begin = 0;   // of the data
};

// Plain numbers of at most 8 bytes, in C order, as many as the shape says. Anything else throws Error (data).
Npy read_npy(const std::string& path);

}  // namespace pal::io
