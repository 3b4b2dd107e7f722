#include "core/io/cores.h"

#include <sched.h>

#include <thread>

namespace pal::io {

int usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace pal::io
