// mpi_check: PAL_MPI_CHECK(call) throws pal::Error with MPI's own message, and a wait for requests that leaves the core
// to other threads. The usual cause of an error of MPI is that another rank has ended, so the exit code is Exit::lost.
#pragma once

#include <mpi.h>

#include <chrono>
#include <string>
#include <thread>

#include "kernels/base/error.h"

namespace pal::dist {

inline void mpi_check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(Exit::lost, std::string("MPI failed in ") + call + ": " + std::string(text, length));
}

#define PAL_MPI_CHECK(call) ::pal::dist::mpi_check((call), #call)

// Tests the requests every 50 µs and sleeps in between; MPI_Waitall would spin.
inline void wait_without_spinning(MPI_Request* requests, int count) {
  for (int done = 0;;) {
    PAL_MPI_CHECK(MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE));
    if (done) return;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace pal::dist
