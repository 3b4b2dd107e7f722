#include "launch/machine.h"

#include <malloc.h>

#include <fstream>
#include <limits>

namespace pal {
namespace {

// The value of a "name : value" line of a /proc file; empty when it is not there.
std::string proc_value(const char* file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, name.size(), name) != 0) continue;
    const size_t colon = line.find(':');
    const size_t first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? "" : line.substr(first);
  }
  return "";
}

}  // namespace

std::string cpu_model() { return proc_value("/proc/cpuinfo", "model name"); }

double peak_memory_mb() {
  const std::string value = proc_value("/proc/self/status", "VmHWM");
  return value.empty() ? 0 : std::stod(value) / 1024;
}

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace pal
