#include "launch/process/machine.h"

#include <malloc.h>

#include <fstream>
#include <limits>

namespace pal::launch {

std::string proc_field(const std::string& path, const std::string& name) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name)) continue;
    const size_t value = line.find_first_not_of(": \t", line.find(':'));
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

double peak_memory_mb() {
  const std::string value = proc_field("/proc/self/status", "VmHWM");
  return value.empty() ? 0 : std::stod(value) / 1024;
}

double reset_peak_memory_mb() {
  std::ofstream("/proc/self/clear_refs") << 5;
  return peak_memory_mb();
}

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace pal::launch
