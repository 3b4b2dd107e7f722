// nvjpeg_misuse: the stand-in for nvJPEG detects each wrong use, so that a test that passes on it proves something.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>

#include "core/data/image/nvjpeg_library.h"
#include "tests/core/data/image/jpeg_files.h"

namespace pal::data {
namespace {

// One image, as far as a test takes it.
struct Rig {
  NvjpegLibrary n;
  std::vector<uint8_t> file = test_jpeg(test_picture(40, 50, 3, 1), 40, 50);
  nvjpegHandle_t handle{};
  nvjpegJpegDecoder_t decoder{};
  nvjpegJpegState_t state{};
  nvjpegBufferPinned_t pinned{};
  nvjpegBufferDevice_t work{};
  nvjpegJpegStream_t parsed{};
  nvjpegDecodeParams_t params{};
  cudaStream_t stream{}, other{};
  nvjpegImage_t out{};

  Rig() {
    n.CreateEx(NVJPEG_BACKEND_HYBRID, nullptr, nullptr, 0, &handle);
    n.DecoderCreate(handle, NVJPEG_BACKEND_HYBRID, &decoder);
    n.DecoderStateCreate(handle, decoder, &state);
    n.BufferPinnedCreate(handle, nullptr, &pinned);
    n.BufferDeviceCreate(handle, nullptr, &work);
    n.StateAttachPinnedBuffer(state, pinned);
    n.StateAttachDeviceBuffer(state, work);
    n.JpegStreamCreate(handle, &parsed);
    n.DecodeParamsCreate(handle, &params);
    n.DecodeParamsSetOutputFormat(params, NVJPEG_OUTPUT_RGBI);
    n.DecodeParamsSetROI(params, 0, 0, 50, 40);
    n.JpegStreamParse(handle, file.data(), file.size(), 0, 0, parsed);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaMalloc(reinterpret_cast<void**>(&out.channel[0]), 50 * 40 * 3);
    out.pitch[0] = 150;
  }
  ~Rig() {
    cudaDeviceSynchronize();
    n.DecodeParamsDestroy(params);
    n.JpegStreamDestroy(parsed);
    if (state) n.JpegStateDestroy(state);
    n.BufferPinnedDestroy(pinned);
    n.BufferDeviceDestroy(work);
    n.DecoderDestroy(decoder);
    n.Destroy(handle);
    cudaFree(out.channel[0]);
    cudaStreamDestroy(stream);
    cudaStreamDestroy(other);
  }
  nvjpegStatus_t host() { return n.DecodeJpegHost(handle, decoder, state, params, parsed); }
  nvjpegStatus_t transfer(cudaStream_t on) { return n.DecodeJpegTransferToDevice(handle, decoder, state, parsed, on); }
  nvjpegStatus_t device() { return n.DecodeJpegDevice(handle, decoder, state, &out, stream); }
};

#define EXPECT_REFUSED(call, words)                                                            \
  do {                                                                                         \
    testing::internal::CaptureStderr();                                                        \
    EXPECT_NE(call, NVJPEG_STATUS_SUCCESS);                                                    \
    EXPECT_NE(testing::internal::GetCapturedStderr().find(words), std::string::npos) << words; \
  } while (0)

TEST(NvjpegStandIn, FindsWrongOrders) {
  Rig r;
  EXPECT_REFUSED(r.transfer(r.stream), "transfer without its host phase");
  EXPECT_REFUSED(r.device(), "device phase without its transfer");
  ASSERT_EQ(r.host(), NVJPEG_STATUS_SUCCESS);
  EXPECT_REFUSED(r.device(), "device phase without its transfer");
  ASSERT_EQ(r.transfer(r.stream), NVJPEG_STATUS_SUCCESS);
  EXPECT_REFUSED(r.host(), "that the device still uses");
  EXPECT_REFUSED(r.n.JpegStateDestroy(r.state), "destroyed while the device uses it");
  ASSERT_EQ(r.device(), NVJPEG_STATUS_SUCCESS);
  cudaStreamSynchronize(r.stream);
  ASSERT_EQ(r.host(), NVJPEG_STATUS_SUCCESS);
  EXPECT_REFUSED(r.transfer(r.other), "used on two streams");
}

TEST(NvjpegStandIn, FindsReadsOfFreedBytes) {
  Rig r;
  ASSERT_EQ(r.host(), NVJPEG_STATUS_SUCCESS);
  r.file[r.file.size() / 2] ^= 1;
  EXPECT_REFUSED(r.transfer(r.stream), "bytes are no longer there");
}

TEST(NvjpegStandIn, FindsRegionsAndOutputsThatDoNotFit) {
  Rig r;
  r.n.DecodeParamsSetROI(r.params, 1, 0, 50, 40);
  EXPECT_REFUSED(r.host(), "outside of the picture");
  r.n.DecodeParamsSetROI(r.params, 0, 0, 50, 40);
  ASSERT_EQ(r.host(), NVJPEG_STATUS_SUCCESS);
  ASSERT_EQ(r.transfer(r.stream), NVJPEG_STATUS_SUCCESS);
  r.out.pitch[0] = 149;
  EXPECT_REFUSED(r.device(), "a pitch of 149 for lines of 150 bytes");
  r.out.pitch[0] = 151;
  EXPECT_REFUSED(r.device(), "not all, in the device's memory");
  r.out.pitch[0] = 150;
  uint8_t* device = r.out.channel[0];
  std::vector<uint8_t> on_the_host(50 * 40 * 3);
  r.out.channel[0] = on_the_host.data();
  EXPECT_REFUSED(r.device(), "not all, in the device's memory");
  r.out.channel[0] = device;
  EXPECT_EQ(r.device(), NVJPEG_STATUS_SUCCESS);
}

TEST(NvjpegStandIn, FindsUsesOfDestroyedObjects) {
  Rig r;
  ASSERT_EQ(r.n.JpegStateDestroy(r.state), NVJPEG_STATUS_SUCCESS);
  EXPECT_REFUSED(r.host(), "an object that is none");
  EXPECT_REFUSED(r.n.JpegStateDestroy(r.state), "was destroyed before");
  r.state = nullptr;
}

}  // namespace
}  // namespace pal::data
