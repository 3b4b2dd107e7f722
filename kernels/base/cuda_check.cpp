#include "kernels/base/cuda_check.h"

#include <unistd.h>

#include <string>

#include "kernels/base/cuda_error.h"
#include "kernels/base/error.h"

namespace pal {
namespace {

// "cuda:1, PCI 0000:41:00.0, host node7"; these questions need no working device.
std::string this_device() {
  int device = 0;
  char bus[32] = {}, host[256] = {};
  const std::string where = gethostname(host, sizeof(host) - 1) == 0 ? std::string(", host ") + host : "";
  if (cudaGetDevice(&device) != cudaSuccess) return "unknown device" + where;
  const bool known = cudaDeviceGetPCIBusId(bus, sizeof(bus), device) == cudaSuccess;
  return "cuda:" + std::to_string(device) + (known ? std::string(", PCI ") + bus : "") + where;
}

std::string driver_version() {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  const auto text = [](int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); };
  return "the driver supports CUDA " + (driver == 0 ? "none" : text(driver)) + ", this program needs " + text(runtime);
}

std::string memory_text() {
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return "";
  return ", " + std::to_string(free >> 20) + " of " + std::to_string(total >> 20) + " MiB are free";
}

Error one_sentence(Exit code, const std::string& what, const std::string& todo) {
  return Error(code, what + "; " + todo);
}

}  // namespace

Error cuda_error(int number, const std::string& where) {
  auto error = static_cast<cudaError_t>(number);
  int devices = 0;  // without a device CUB reports an invalid device; the count gives the cause
  if (error == cudaErrorInvalidDevice && cudaGetDeviceCount(&devices) != cudaSuccess) error = cudaGetLastError();
  const std::string what = std::string("CUDA: ") + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")";
  switch (error) {
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
      return one_sentence(Exit::usage, what + ": " + driver_version(),
                          "install a newer NVIDIA driver (nvidia-smi shows the present one), or compute on the CPU");
    case cudaErrorNoDevice:
    case cudaErrorStubLibrary:
    case cudaErrorSystemNotReady:
      return one_sentence(Exit::usage, what, "check the NVIDIA driver with nvidia-smi, or run on the CPU");
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:
      return one_sentence(
          Exit::usage, what,
          "check CUDA_VISIBLE_DEVICES, the ranks per machine, and that no other process has the device");
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return one_sentence(Exit::usage, what + ", " + this_device(),
                          "build again with this GPU in PAL_CUDA_ARCHITECTURES");
    case cudaErrorMemoryAllocation:
      return one_sentence(Exit::usage, what + ", " + this_device() + memory_text(), kLessDeviceMemory);
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorExternalDevice:
    case cudaErrorContained:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorUnknown:
      return one_sentence(
          Exit::lost, what + ": the device is lost, " + this_device(),
          "a restart continues from the last checkpoint; leave this device or its host out if it happens again");
    default:
      return one_sentence(Exit::bug, what + ": " + where + ", " + this_device(), "please report it");
  }
}

namespace detail {

void fail_cuda(cudaError_t error, const char* call, const char* file, int line) {
  throw cuda_error(error, std::string(call) + " at " + file + ":" + std::to_string(line));
}

}  // namespace detail
}  // namespace pal
