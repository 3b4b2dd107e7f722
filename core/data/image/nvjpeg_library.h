// nvjpeg_library: libnvjpeg, opened when it is asked for: the program itself does not depend on it.
#pragma once

#include <nvjpeg.h>

#include <string>

namespace pal::data {

// The functions that we use; each is looked up by its name when the library is opened.
#define PAL_NVJPEG_FUNCTIONS(F)                                                                                    \
  F(GetProperty)                                                                                                   \
  F(CreateEx)                                                                                                      \
  F(Destroy) F(SetDeviceMemoryPadding) F(SetPinnedMemoryPadding) F(DecoderCreate) F(DecoderDestroy)                \
      F(DecoderStateCreate) F(JpegStateDestroy) F(BufferPinnedCreate) F(BufferPinnedDestroy) F(BufferDeviceCreate) \
          F(BufferDeviceDestroy) F(StateAttachPinnedBuffer) F(StateAttachDeviceBuffer) F(JpegStreamCreate)         \
              F(JpegStreamDestroy) F(JpegStreamParse) F(DecodeParamsCreate) F(DecodeParamsDestroy)                 \
                  F(DecodeParamsSetOutputFormat) F(DecodeParamsSetROI) F(DecoderJpegSupported) F(DecodeJpegHost)   \
                      F(DecodeJpegTransferToDevice) F(DecodeJpegDevice)

struct NvjpegLibrary {
  // Throws Error (usage) where it is not there, or lacks a function. It stays open until the program ends.
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

// Memory is the user's to mend: exit code 2. The rest is ours: 70.
#define PAL_NVJPEG_CHECK(call)                                                                                  \
  do {                                                                                                          \
    const nvjpegStatus_t pal_nvjpeg_status = (call);                                                            \
    if (pal_nvjpeg_status != NVJPEG_STATUS_SUCCESS) ::pal::data::detail::fail_nvjpeg(pal_nvjpeg_status, #call); \
  } while (0)
