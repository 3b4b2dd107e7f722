// machine: facts about this machine and this process for benchmarks and the doctor.
#pragma once

#include <string>

namespace pal::launch {

// The value behind "name : value" in a file such as /proc/cpuinfo; empty when it is not there.
std::string proc_field(const std::string& path, const std::string& name);
double peak_memory_mb();  // VmHWM of this process
// The peak counts anew from what the process holds now; returns that. Where the system does not allow it, the old peak.
double reset_peak_memory_mb();

// Freed memory stays in the process. A step frees and asks for the same tensors again; giving their pages back to the
// system and faulting them in anew takes a third of the time of a small model's step.
void keep_freed_memory();

}  // namespace pal::launch
