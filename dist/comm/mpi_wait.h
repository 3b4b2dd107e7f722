// mpi_wait: waits for MPI requests without taking the core: asks now and then, and sleeps in between.
#pragma once

#include <chrono>
#include <thread>

#include "dist/comm/mpi_check.h"

namespace pal::dist {

inline void wait_without_spinning(MPI_Request* requests, int count) {
  for (int done = 0;;) {
    PAL_MPI_CHECK(MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE));
    if (done) return;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace pal::dist
