#include "dist/comm/device_found.h"

#include <cstdio>

#include "dist/comm/mpi_check.h"

#ifdef PAL_WITH_CUDA
#include <cuda_runtime_api.h>
#include <nccl.h>
#endif

namespace pal::dist {

#ifndef PAL_WITH_CUDA

FoundDevices found_devices(const std::string& host, int local_rank) {
  return {host, local_rank, 0, "this program was built without CUDA", "", 0};
}

#else

FoundDevices found_devices(const std::string& host, int local_rank) {
  FoundDevices found;
  found.host = host;
  found.local_rank = local_rank;
  if (ncclGetVersion(&found.nccl) != ncclSuccess) found.nccl = 0;
  int driver = 0;
  cudaError_t error = cudaGetDeviceCount(&found.visible);
  if (error != cudaSuccess) {
    found.visible = 0;
    found.reason = cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0 ? "no NVIDIA driver on this machine"
                                                                               : cudaGetErrorString(error);
  } else if (found.visible == 0) {
    found.reason = "the driver shows no device (CUDA_VISIBLE_DEVICES?)";
  } else {
    char bus[32] = {};
    error = cudaDeviceGetPCIBusId(bus, sizeof(bus), device_of(local_rank, found.visible));
    found.bus = bus;
    if (error != cudaSuccess) {
      found.visible = 0;
      found.reason = cudaGetErrorString(error);
    }
  }
  cudaGetLastError();  // the next caller must not find it
  return found;
}

#endif

std::vector<FoundDevices> gather_found(const FoundDevices& mine, MPI_Comm comm) {
  struct GradDtype {
    char host[256] = {}, reason[256] = {}, bus[32] = {};
    int local_rank = 0, visible = 0, nccl = 0;
  };
  GradDtype out;
  std::snprintf(out.host, sizeof(out.host), "%s", mine.host.c_str());
  std::snprintf(out.reason, sizeof(out.reason), "%s", mine.reason.c_str());
  std::snprintf(out.bus, sizeof(out.bus), "%s", mine.bus.c_str());
  out.local_rank = mine.local_rank;
  out.visible = mine.visible;
  out.nccl = mine.nccl;
  int size = 1;
  PAL_MPI_CHECK(MPI_Comm_size(comm, &size));
  std::vector<GradDtype> all(static_cast<size_t>(size));
  PAL_MPI_CHECK(MPI_Allgather(&out, sizeof(GradDtype), MPI_BYTE, all.data(), sizeof(GradDtype), MPI_BYTE, comm));
  std::vector<FoundDevices> found;
  for (const GradDtype& w : all) found.push_back({w.host, w.local_rank, w.visible, w.reason, w.bus, w.nccl});
  return found;
}

}  // namespace pal::dist
