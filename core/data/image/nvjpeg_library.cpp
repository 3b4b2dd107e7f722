#include "core/data/image/nvjpeg_library.h"

#include <dlfcn.h>

#include "kernels/base/error.h"

namespace pal::data {
namespace {

constexpr const char* kInstall =
    "install it with launch/setup (or the package nvidia-nvjpeg for CUDA 13), or set data.decoder=cpu";

const char* words(nvjpegStatus_t status) {
  switch (status) {
    case NVJPEG_STATUS_SUCCESS:
      return "success";
    case NVJPEG_STATUS_NOT_INITIALIZED:
      return "not initialized";
    case NVJPEG_STATUS_INVALID_PARAMETER:
      return "invalid parameter";
    case NVJPEG_STATUS_BAD_JPEG:
      return "bad JPEG";
    case NVJPEG_STATUS_JPEG_NOT_SUPPORTED:
      return "JPEG not supported";
    case NVJPEG_STATUS_ALLOCATOR_FAILURE:
      return "allocator failure";
    case NVJPEG_STATUS_EXECUTION_FAILED:
      return "execution failed";
    case NVJPEG_STATUS_ARCH_MISMATCH:
      return "the GPU is too old for it";
    case NVJPEG_STATUS_INTERNAL_ERROR:
      return "internal error";
    case NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED:
      return "implementation not supported";
    case NVJPEG_STATUS_INCOMPLETE_BITSTREAM:
      return "incomplete bit stream";
  }
  return "unknown status";
}

}  // namespace

NvjpegLibrary::NvjpegLibrary(const std::string& name) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw Error(Exit::usage, std::string("nvJPEG is not on this machine: ") + dlerror() + "; " + kInstall);
#define PAL_NVJPEG_FUNCTION(function)                                                  \
  function = reinterpret_cast<decltype(function)>(dlsym(library, "nvjpeg" #function)); \
  PAL_CHECK(function, name + " is an nvJPEG of another version: it lacks", "nvjpeg" #function, kInstall);
  PAL_NVJPEG_FUNCTIONS(PAL_NVJPEG_FUNCTION)
#undef PAL_NVJPEG_FUNCTION
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int number = 0;
    PAL_NVJPEG_CHECK(GetProperty(part, &number));
    if (!version.empty()) version += ".";
    version += std::to_string(number);
  }
}

void detail::fail_nvjpeg(nvjpegStatus_t status, const char* call) {
  const std::string what = std::string("nvJPEG: ") + words(status);
  if (status == NVJPEG_STATUS_ALLOCATOR_FAILURE)
    pal::detail::fail(Exit::usage, what, "", "make the batch or data.prefetch smaller, or set data.decoder=cpu");
  if (status == NVJPEG_STATUS_ARCH_MISMATCH) pal::detail::fail(Exit::usage, what, "", "set data.decoder=cpu");
  pal::detail::fail(Exit::bug, what, call, "set data.decoder=cpu, and please report it");
}

}  // namespace pal::data
