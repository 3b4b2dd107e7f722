// regular_file: opens and reads files that others wrote. A folder, a pipe, a socket or a device is refused with a
// sentence, Error (data): a pipe would block the reader, and a device may never end.
#pragma once

#include <cstdint>
#include <string>

namespace pal::io {

// A descriptor to read from; the caller closes it.
int open_regular_file(const std::string& path);

// The whole content; a file of more than `most` bytes, or of more than the memory that is free, is refused.
std::string read_regular_file(const std::string& path, uint64_t most);

// Throws Error (data) when `bytes` of this file do not fit into the memory that is free on this host: before it is
// allocated, because the system would otherwise end the process, or another one.
void check_fits_memory(const std::string& path, double bytes);

}  // namespace pal::io
