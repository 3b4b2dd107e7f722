// nvjpeg_decoder on the stand-ins of the CUDA runtime and of nvJPEG: whole decodes and crops, files for libjpeg, reuse
// of memory, errors; and the functions of the real library, which need no GPU.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "core/data/image/nvjpeg_decoder.h"
#include "core/data/image/nvjpeg_library.h"
#include "kernels/base/cuda_check.h"
#include "tests/core/data/data_files.h"
#include "tests/core/data/image/jpeg_files.h"

namespace pal::data {
namespace {

// What the stand-in counts.
int counted(const char* name) {
  void* library = dlopen(NvjpegLibrary::kName, RTLD_NOW | RTLD_NOLOAD);
  const auto count = library ? reinterpret_cast<int (*)()>(dlsym(library, name)) : nullptr;
  EXPECT_NE(count, nullptr) << "the stand-in is not in LD_LIBRARY_PATH";
  return count ? count() : -1;
}

// nvJPEG was used correctly, and every object was destroyed.
class Nvjpeg : public testing::Test {
 protected:
  void SetUp() override {
    const NvjpegLibrary open;
    before_ = counted("simnvjpegComplaints");
  }
  void TearDown() override {
    EXPECT_EQ(counted("simnvjpegComplaints"), before_);
    EXPECT_EQ(counted("simnvjpegLive"), 0);
  }

 private:
  int before_ = 0;
};

std::vector<uint8_t> picture(int32_t height, int32_t width, const JpegForm& form, uint64_t seed) {
  const int channels = form.pixels == JCS_GRAYSCALE ? 1 : form.pixels == JCS_CMYK ? 4 : 3;
  return test_jpeg(test_picture(height, width, channels, seed), height, width, form);
}

// The reference: all pixels by libjpeg, then the box.
std::vector<uint8_t> crop_of(const std::vector<uint8_t>& file, const JpegBox& box) {
  std::vector<uint8_t> whole, part;
  JpegDecoder decoder;
  const DecodedJpeg all = decoder.decode(file, whole);
  for (int32_t y = 0; y < box.height; ++y) {
    const auto line = whole.begin() + 3 * ((box.top + y) * all.width + box.left);
    part.insert(part.end(), line, line + 3 * box.width);
  }
  return part;
}

// The CUDA calls that a test needs.
struct Gpu {
  cudaStream_t stream = nullptr;
  uint8_t* memory = nullptr;

  explicit Gpu(size_t bytes) {
    PAL_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    PAL_CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&memory), bytes));
  }
  ~Gpu() {
    cudaFree(memory);
    cudaStreamDestroy(stream);
  }
  std::vector<uint8_t> read(size_t at, size_t bytes) const {
    std::vector<uint8_t> host(bytes);
    PAL_CUDA_CHECK(cudaMemcpyAsync(host.data(), memory + at, bytes, cudaMemcpyDeviceToHost, stream));
    PAL_CUDA_CHECK(cudaStreamSynchronize(stream));
    return host;
  }
};

// Steps of images of growing size, begun by three threads and finished on one stream while the next step is begun: the
// memory of the first ones serves the later ones.
TEST_F(Nvjpeg, PartsEqualAWholeDecode) {
  constexpr int kImages = 12, kSteps = 4;
  constexpr size_t kRoom = 256 * 256 * 3;
  const Gpu gpu(kImages * kRoom);
  const auto decoder = make_nvjpeg_decoder(0);
  std::vector<std::unique_ptr<DeviceDecoder::Image>> begun(kImages);
  for (int step = 0; step < kSteps; ++step) {
    std::vector<std::vector<uint8_t>> files;
    std::vector<JpegBox> boxes;
    for (int i = 0; i < kImages; ++i) {
      JpegForm form;
      form.progressive = i % 4 == 3;
      form.h = i % 3 == 2 ? 1 : 2;
      form.v = i % 3 == 0 ? 2 : 1;
      form.adobe = i % 5 == 4;  // marked as Y, Cb, Cr
      const int32_t height = 17 + 9 * i + 40 * step, width = 120 - 5 * i + 30 * step;
      files.push_back(picture(height, width, form, static_cast<uint64_t>(100 * step + i)));
      boxes.push_back(i == 0 ? JpegBox{0, 0, height, width}
                             : JpegBox{i % 7, 2 * i + 1, height - i % 7 - i, width - 3 * i - 1});
    }
    std::vector<std::vector<uint8_t>> given = files;
    std::vector<std::thread> workers;
    for (int w = 0; w < 3; ++w) {
      workers.emplace_back([&, w] {
        for (size_t i = static_cast<size_t>(w); i < kImages; i += 3) begun[i] = decoder->begin(given[i], boxes[i]);
      });
    }
    for (std::thread& w : workers) w.join();
    for (size_t i = 0; i < kImages; ++i) {
      ASSERT_TRUE(begun[i]) << "step " << step << " image " << i;
      EXPECT_TRUE(given[i].empty()) << "the bytes are taken";
      decoder->finish(std::move(begun[i]), gpu.memory + i * kRoom, gpu.stream);
    }
    for (size_t i = 0; i < kImages && step % 2 == 1; ++i) {  // the other steps are not waited for
      const std::vector<uint8_t> want = crop_of(files[i], boxes[i]);
      ASSERT_EQ(gpu.read(i * kRoom, want.size()), want) << "step " << step << " image " << i;
    }
  }
}

TEST_F(Nvjpeg, LeavesUnsupportedFilesToLibjpeg) {
  JpegForm gray, cmyk, rgb, odd;
  gray.pixels = JCS_GRAYSCALE;
  cmyk.pixels = JCS_CMYK;
  rgb.plain_rgb = true;
  rgb.h = rgb.v = 1;
  odd.h = 2, odd.v = 4;
  std::vector<uint8_t> zero = picture(40, 50, {}, 5);  // components numbered 0, 1, 2
  for (size_t i = 2; i + 10 < zero.size(); ++i) {
    if (zero[i] != 0xFF || (zero[i + 1] != 0xC0 && zero[i + 1] != 0xDA)) continue;
    const size_t first = zero[i + 1] == 0xC0 ? 10 : 5, apart = zero[i + 1] == 0xC0 ? 3 : 2;
    for (size_t c = 0; c < 3; ++c) zero[i + first + c * apart] = static_cast<uint8_t>(c);
    if (zero[i + 1] == 0xDA) break;
  }
  std::vector<uint8_t> cut = picture(40, 50, {}, 6);  // the check up to the first scan does not reach it
  cut.resize(cut.size() - 200);
  const std::pair<const char*, std::vector<uint8_t>> cases[] = {
      {"gray", picture(40, 50, gray, 1)},        {"CMYK", picture(40, 50, cmyk, 2)}, {"RGB", picture(40, 50, rgb, 3)},
      {"odd sampling", picture(40, 50, odd, 4)}, {"numbered from 0", zero},          {"cut", cut}};
  const auto decoder = make_nvjpeg_decoder(0);
  for (const auto& [name, file] : cases) {
    std::vector<uint8_t> given = file;
    EXPECT_FALSE(decoder->begin(given, {0, 0, 40, 50})) << name;
    EXPECT_EQ(given, file) << name << ": the bytes are left";
    std::vector<uint8_t> rgb_pixels;
    EXPECT_NO_THROW(JpegDecoder().decode(file, rgb_pixels)) << name;
  }
  std::vector<uint8_t> good = picture(40, 50, {}, 7);
  EXPECT_TRUE(decoder->begin(good, {0, 0, 40, 50}));  // and is dropped
}

// A failure of the machine is reported as such, not as a damaged file; memory that the device still uses is not freed.
TEST_F(Nvjpeg, FailuresOfTheDeviceAreNamed) {
  const Gpu gpu(40 * 50 * 3);
  for (const auto& [status, code, words] :
       {std::tuple{"5", Exit::usage, "nvJPEG: allocator failure; make the batch or data.prefetch smaller"},
        std::tuple{"6", Exit::bug, "nvJPEG: execution failed: the decode of an image on the device"}}) {
    const auto decoder = make_nvjpeg_decoder(0);
    std::vector<uint8_t> file = picture(40, 50, {}, 8);
    std::unique_ptr<DeviceDecoder::Image> image = decoder->begin(file, {0, 0, 40, 50});
    ASSERT_TRUE(image);
    setenv("SIMNVJPEG_FAIL", status, 1);
    const std::string said = error_of(code, [&] { decoder->finish(std::move(image), gpu.memory, gpu.stream); });
    unsetenv("SIMNVJPEG_FAIL");
    EXPECT_TRUE(contains(said, words)) << said;
  }
}

TEST_F(Nvjpeg, AMissingLibraryIsNamedWithWhatToDo) {
  const std::string none = error_of(Exit::usage, [] { NvjpegLibrary("libnvjpeg.so.99"); });
  EXPECT_TRUE(contains(none, "libnvjpeg.so.99")) << none;
  EXPECT_TRUE(contains(none, "package nvidia-nvjpeg")) << none;
  const std::string other = error_of(Exit::usage, [] { NvjpegLibrary("libcudart.so.13"); });
  EXPECT_TRUE(contains(other, "it lacks: nvjpegGetProperty")) << other;
}

// Without the stand-ins' folder in LD_LIBRARY_PATH: every function that we look up is there.
TEST(RealNvjpeg, HasEveryFunction) {
  const NvjpegState state = nvjpeg_state();
  if (contains(state.reason, "is not on this machine")) GTEST_SKIP() << state.reason;
  EXPECT_EQ(state.reason, "");
  EXPECT_EQ(state.version.substr(0, 3), "13.") << state.version;
  void* library = dlopen(NvjpegLibrary::kName, RTLD_NOW | RTLD_NOLOAD);
  EXPECT_EQ(dlsym(library, "simnvjpegLive"), nullptr) << "this is the stand-in";
  RecordProperty("version", state.version);
}

}  // namespace
}  // namespace pal::data
