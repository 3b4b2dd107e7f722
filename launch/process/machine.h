// machine: facts about this machine and this process for benchmarks and the doctor.
#pragma once

#include <string>

namespace pal::launch {

// The value of a line "name : value" in a file such as /proc/cpuinfo; empty when there is none.
std::string proc_field(const std::string& path, const std::string& name);
double peak_memory_mb();  // VmHWM of this process
// Resets the peak to the memory in use now and returns it; returns the old peak if the system does not allow the reset.
double reset_peak_memory_mb();

// Keeps freed memory in the process. A step frees and allocates the same tensors; returning their pages to the system
// and faulting them in again takes a third of the step of a small model.
void keep_freed_memory();

}  // namespace pal::launch
