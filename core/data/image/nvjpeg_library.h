// nvjpeg_library: opens libnvjpeg at run time, so that the program does not depend on it.
#pragma once

#include <nvjpeg.h>

#include <string>

namespace pal::data {

// The functions in use; the constructor looks each one up by name. (clang-format does not settle on one layout of it.)
// clang-format off
#define PAL_NVJPEG_FUNCTIONS(F) \
  F(GetProperty) F(CreateEx) F(Destroy) F(SetDeviceMemoryPadding) F(SetPinnedMemoryPadding) F(DecoderCreate) \
  F(DecoderDestroy) F(DecoderStateCreate) F(JpegStateDestroy) F(BufferPinnedCreate) F(BufferPinnedDestroy) \
  F(BufferDeviceCreate) F(BufferDeviceDestroy) F(StateAttachPinnedBuffer) F(StateAttachDeviceBuffer) \
  F(JpegStreamCreate) F(JpegStreamDestroy) F(JpegStreamParse) F(DecodeParamsCreate) F(DecodeParamsDestroy) \
  F(DecodeParamsSetOutputFormat) F(DecodeParamsSetROI) F(DecoderJpegSupported) F(DecodeJpegHost) \
  F(DecodeJpegTransferToDevice) F(DecodeJpegDevice)
// clang-format on

struct NvjpegLibrary {
  // Throws Error (usage) when the library is missing or lacks a function. It stays open until the program ends.
  explicit NvjpegLibrary(const std::string& name = kName);

  static constexpr const char* kName = "libnvjpeg.so.13";
  std::string version;  // "13.0.1"
#define PAL_NVJPEG_FUNCTION(name) decltype(&nvjpeg##name) name = nullptr;
  PAL_NVJPEG_FUNCTIONS(PAL_NVJPEG_FUNCTION)
#undef PAL_NVJPEG_FUNCTION
};

namespace detail {
[[noreturn]] void fail_nvjpeg(nvjpegStatus_t status, const char* call);
}  // namespace detail

}  // namespace pal::data

// Out of memory is a usage error (exit code 2); every other failure is a bug (70).
#define PAL_NVJPEG_CHECK(call)                                                                                  \
  do {                                                                                                          \
    const nvjpegStatus_t pal_nvjpeg_status = (call);                                                            \
    if (pal_nvjpeg_status != NVJPEG_STATUS_SUCCESS) ::pal::data::detail::fail_nvjpeg(pal_nvjpeg_status, #call); \
  } while (0)
