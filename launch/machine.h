// machine: facts about this machine and this process for benchmarks and the doctor.
#pragma once

#include <string>

namespace pal {

std::string cpu_model();          // "Intel(R) Xeon(R) …"
double peak_memory_mb();          // VmHWM of this process

}  // namespace pal
