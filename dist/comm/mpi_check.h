// mpi_check: PAL_MPI_CHECK(call) throws pal::Error with MPI's own words. Most often another rank is gone: a restart helps.
#pragma once

#include <mpi.h>

#include <string>

#include "kernels/base/error.h"

namespace pal::detail {

inline void mpi_check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(Exit::lost, std::string("MPI failed in ") + call + ": " + std::string(text, length));
}

}  // namespace pal::detail

#define PAL_MPI_CHECK(call) ::pal::detail::mpi_check((call), #call)
