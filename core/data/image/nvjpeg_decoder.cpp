#include "core/data/image/nvjpeg_decoder.h"

#include "kernels/base/error.h"

#ifndef PAL_WITH_NVJPEG

namespace pal::data {

std::shared_ptr<DeviceDecoder> make_nvjpeg_decoder(int) { throw Error(Exit::usage, nvjpeg_state().reason); }
NvjpegState nvjpeg_state() {
  return {"", "nvJPEG is not in this build; run launch/setup and build again with CUDA, or set data.decoder=cpu"};
}

}  // namespace pal::data

#else

#include <deque>
#include <mutex>
#include <utility>

#include "core/data/image/nvjpeg_library.h"
#include "kernels/base/cuda_check.h"

namespace pal::data {
namespace {

// Whether a status is about the file. All others are bugs or faults of the machine, which another decoder cannot fix.
bool is_about_the_file(nvjpegStatus_t status) {
  return status == NVJPEG_STATUS_BAD_JPEG || status == NVJPEG_STATUS_JPEG_NOT_SUPPORTED ||
         status == NVJPEG_STATUS_INCOMPLETE_BITSTREAM || status == NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED ||
         status == NVJPEG_STATUS_EXECUTION_FAILED;
}

// The nvJPEG handles that all images share.
struct Session {
  NvjpegLibrary nvjpeg;
  nvjpegHandle_t handle = nullptr;
  nvjpegJpegDecoder_t decoder = nullptr;
  nvjpegBufferDevice_t work = nullptr;

  Session() {
    // Interpolated chroma, as libjpeg's.
    PAL_NVJPEG_CHECK(
        nvjpeg.CreateEx(NVJPEG_BACKEND_HYBRID, nullptr, nullptr, NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION, &handle));
    // Memory grows in large steps, because an allocation waits for the GPU.
    PAL_NVJPEG_CHECK(nvjpeg.SetDeviceMemoryPadding(size_t{16} << 20, handle));
    PAL_NVJPEG_CHECK(nvjpeg.SetPinnedMemoryPadding(size_t{1} << 17, handle));
    PAL_NVJPEG_CHECK(nvjpeg.DecoderCreate(handle, NVJPEG_BACKEND_HYBRID, &decoder));
    PAL_NVJPEG_CHECK(nvjpeg.BufferDeviceCreate(handle, nullptr, &work));
  }
  ~Session() {
    nvjpeg.BufferDeviceDestroy(work);
    nvjpeg.DecoderDestroy(decoder);
    nvjpeg.Destroy(handle);
  }
};

struct NvjpegImage final : DeviceDecoder::Image {
  Session& session;
  nvjpegJpegState_t state = nullptr;
  nvjpegJpegStream_t parsed = nullptr;  // points into `file`
  nvjpegDecodeParams_t params = nullptr;
  nvjpegBufferPinned_t pinned = nullptr;
  cudaEvent_t finished = nullptr;
  std::vector<uint8_t> file;
  int32_t width = 0;  // of the part

  explicit NvjpegImage(Session& s) : session(s) {
    const NvjpegLibrary& nvjpeg = s.nvjpeg;
    PAL_CUDA_CHECK(cudaEventCreateWithFlags(&finished, cudaEventDisableTiming | cudaEventBlockingSync));
    PAL_NVJPEG_CHECK(nvjpeg.DecoderStateCreate(s.handle, s.decoder, &state));
    PAL_NVJPEG_CHECK(nvjpeg.BufferPinnedCreate(s.handle, nullptr, &pinned));
    PAL_NVJPEG_CHECK(nvjpeg.StateAttachPinnedBuffer(state, pinned));
    PAL_NVJPEG_CHECK(nvjpeg.JpegStreamCreate(s.handle, &parsed));
    PAL_NVJPEG_CHECK(nvjpeg.DecodeParamsCreate(s.handle, &params));
    PAL_NVJPEG_CHECK(nvjpeg.DecodeParamsSetOutputFormat(params, NVJPEG_OUTPUT_RGBI));
  }
  ~NvjpegImage() override {
    cudaEventSynchronize(finished);
    const NvjpegLibrary& nvjpeg = session.nvjpeg;
    nvjpeg.DecodeParamsDestroy(params);
    nvjpeg.JpegStreamDestroy(parsed);
    nvjpeg.JpegStateDestroy(state);
    nvjpeg.BufferPinnedDestroy(pinned);
    cudaEventDestroy(finished);
  }

  nvjpegStatus_t decode_on_host(const std::vector<uint8_t>& bytes, const JpegBox& box) {
    const NvjpegLibrary& nvjpeg = session.nvjpeg;
    const auto parse = nvjpeg.JpegStreamParse(session.handle, bytes.data(), bytes.size(), /*save_metadata=*/0,
                                              /*save_stream=*/0, parsed);
    if (parse != NVJPEG_STATUS_SUCCESS) return parse;
    PAL_NVJPEG_CHECK(nvjpeg.DecodeParamsSetROI(params, box.left, box.top, box.width, box.height));
    int refused = 1;  // 0: it is supported
    const auto asked = nvjpeg.DecoderJpegSupported(session.decoder, parsed, params, &refused);
    if (asked != NVJPEG_STATUS_SUCCESS) return asked;
    if (refused != 0) return NVJPEG_STATUS_JPEG_NOT_SUPPORTED;
    width = box.width;
    return nvjpeg.DecodeJpegHost(session.handle, session.decoder, state, params, parsed);
  }

  nvjpegStatus_t decode_on_device(uint8_t* out, cudaStream_t stream) {
    const NvjpegLibrary& nvjpeg = session.nvjpeg;
    nvjpegImage_t pixels{};
    pixels.channel[0] = out;
    pixels.pitch[0] = 3 * static_cast<size_t>(width);
    PAL_NVJPEG_CHECK(nvjpeg.StateAttachDeviceBuffer(state, session.work));
    const auto transfer = nvjpeg.DecodeJpegTransferToDevice(session.handle, session.decoder, state, parsed, stream);
    if (transfer != NVJPEG_STATUS_SUCCESS) return transfer;
    return nvjpeg.DecodeJpegDevice(session.handle, session.decoder, state, &pixels, stream);
  }
};

class NvjpegDecoder final : public DeviceDecoder {
 public:
  // A new thread uses device 0 until it sets another.
  explicit NvjpegDecoder(int device) : device_(device) {
    PAL_CUDA_CHECK(cudaSetDevice(device_));
    session_ = std::make_unique<Session>();
  }

  std::unique_ptr<Image> begin(std::vector<uint8_t>& file, const JpegBox& box) override {
    if (!inspect_jpeg(file.data(), file.size(), JpegWalk::to_first_scan).ycc) return nullptr;
    PAL_CUDA_CHECK(cudaSetDevice(device_));
    std::unique_ptr<NvjpegImage> image = take();
    const nvjpegStatus_t status = image->decode_on_host(file, box);
    if (status == NVJPEG_STATUS_SUCCESS) {
      image->file = std::exchange(file, {});
      return image;
    }
    if (!is_about_the_file(status)) detail::fail_nvjpeg(status, "the decode of a file on the host");
    give_back(std::move(image));
    return nullptr;
  }

  void finish(std::unique_ptr<Image> begun, uint8_t* out, cudaStream_t stream) override {
    std::unique_ptr<NvjpegImage> image(static_cast<NvjpegImage*>(begun.release()));
    const nvjpegStatus_t status = image->decode_on_device(out, stream);
    PAL_CUDA_CHECK(cudaEventRecord(image->finished, stream));  // also after an error: its memory may be in use
    if (status != NVJPEG_STATUS_SUCCESS) detail::fail_nvjpeg(status, "the decode of an image on the device");
    give_back(std::move(image));
  }

 private:
  // The one that was finished first: the GPU has completed it, or will soon.
  std::unique_ptr<NvjpegImage> take() {
    std::unique_ptr<NvjpegImage> image;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        image = std::move(free_.front());
        free_.pop_front();
      }
    }
    if (!image) return std::make_unique<NvjpegImage>(*session_);
    PAL_CUDA_CHECK(cudaEventSynchronize(image->finished));
    return image;
  }
  void give_back(std::unique_ptr<NvjpegImage> image) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(image));
  }

  const int device_;
  std::unique_ptr<Session> session_;
  std::mutex mutex_;                               // of free_
  std::deque<std::unique_ptr<NvjpegImage>> free_;  // in the order in which they were finished
};

}  // namespace

std::shared_ptr<DeviceDecoder> make_nvjpeg_decoder(int device) { return std::make_shared<NvjpegDecoder>(device); }

NvjpegState nvjpeg_state() {
  try {
    return {NvjpegLibrary().version, ""};
  } catch (const Error& error) {
    return {"", error.what()};
  }
}

}  // namespace pal::data

#endif
