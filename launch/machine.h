// machine: facts about this machine and this process for benchmarks and the doctor.
#pragma once

#include <string>

namespace pal {

std::string cpu_model();          // "Intel(R) Xeon(R) …"
double peak_memory_mb();          // VmHWM of this process

// Freed memory stays in the process. A step frees and asks for the same tensors again; giving their pages back to the
// system and faulting them in anew takes a third of the time of a small model's step.
void keep_freed_memory();

}  // namespace pal
