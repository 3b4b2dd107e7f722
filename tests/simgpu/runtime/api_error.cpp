// api_error: errors by number, name and sentence.
#include "tests/simgpu/runtime/device.h"

using namespace simgpu;

namespace {

struct Words {
  cudaError_t error;
  const char *name, *sentence;
};
#define WORDS(error, sentence) \
  { error, #error, sentence }
constexpr Words kWords[] = {
    WORDS(cudaSuccess, "no error"),
    WORDS(cudaErrorInvalidValue, "invalid argument"),
    WORDS(cudaErrorMemoryAllocation, "out of memory"),
    WORDS(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    WORDS(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    WORDS(cudaErrorInvalidSymbol, "invalid device symbol"),
    WORDS(cudaErrorMissingConfiguration, "no launch configuration"),
    WORDS(cudaErrorInvalidDeviceFunction, "invalid device function"),
    WORDS(cudaErrorInvalidDevice, "invalid device ordinal"),
    WORDS(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    WORDS(cudaErrorInvalidPtx, "a PTX text that the stand-in does not take"),
    WORDS(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    WORDS(cudaErrorNotReady, "device not ready"),
    WORDS(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    WORDS(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    WORDS(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    WORDS(cudaErrorMisalignedAddress, "misaligned address"),
    WORDS(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    WORDS(cudaErrorLaunchTimeout, "the launch took more instructions than the limit"),
    WORDS(cudaErrorLaunchFailure, "unspecified launch failure"),
    WORDS(cudaErrorAssert, "device-side assert triggered"),
    WORDS(cudaErrorNotSupported, "operation not supported"),
    WORDS(cudaErrorUnknown, "unknown error"),
};
#undef WORDS

const Words* find(cudaError_t error) {
  for (const Words& words : kWords) {
    if (words.error == error) return &words;
  }
  return nullptr;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  const Words* words = find(error);
  return words != nullptr ? words->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const Words* words = find(error);
  return words != nullptr ? words->sentence : "unrecognized error code";
}

// A sticky error comes again and again.
cudaError_t cudaPeekAtLastError() {
  const cudaError_t sticky = Device::get().sticky();
  return sticky != cudaSuccess ? sticky : last_error();
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error() = cudaSuccess;
  return error;
}

}  // extern "C"
