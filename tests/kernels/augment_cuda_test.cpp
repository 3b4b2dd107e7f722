// augment on CUDA: every pixel is the CPU twin's within 1/255, for random policies, sizes, layouts and filters.
#include "kernels/augment_params.h"
#include "kernels/base/isa.h"
#include "tests/kernels/augment_cases.h"
#include "tests/kernels/cuda_test.h"

namespace pal::kernels {
namespace {

// The images of a batch with their pixels on the device.
struct DeviceBatch {
  DeviceArray<uint8_t> pixels;
  std::vector<ImageView> images;

  explicit DeviceBatch(const Batch& batch) : pixels(together(batch)), images(batch.images) {
    int64_t place = 0;
    for (size_t i = 0; i < images.size(); ++i) {
      images[i].data = pixels.data() + place;
      place += static_cast<int64_t>(batch.pixels[i].size());
    }
  }
  static std::vector<uint8_t> together(const Batch& batch) {
    std::vector<uint8_t> all;
    for (const auto& p : batch.pixels) all.insert(all.end(), p.begin(), p.end());
    return all;
  }
  Span<const ImageView> views() const { return {images.data(), static_cast<int64_t>(images.size())}; }
};

// How far a stored pixel may lie from the CPU's, in units of pixels. Well inside 1/255 where storage allows.
template <class T>
constexpr double kTolerance = std::is_same_v<T, float> ? 1e-4 : 1.0 / 255;

template <class T>
void expect_pixels(const std::vector<T>& stored, const std::vector<float>& want, const Batch& batch,
                   const std::vector<ViewPolicy>& policies, const AugmentOptions& o) {
  const std::vector<double> got = read(stored);
  ASSERT_EQ(got.size(), want.size());
  const int64_t plane = int64_t(o.size) * o.size, count = int64_t(batch.images.size());
  for (size_t n = 0; n < want.size(); ++n) {
    const int64_t view = int64_t(n) / (count * o.channels * plane), i = int64_t(n) / (o.channels * plane) % count;
    const int64_t c = o.layout == Layout::nchw ? int64_t(n) / plane % o.channels : int64_t(n) % o.channels;
    const double a = got[n] * o.std[c] + o.mean[c], b = want[n] * o.std[c] + o.mean[c];
    // bf16 rounds what is stored, the normalized value.
    const double tolerance = kTolerance<T> + (std::is_same_v<T, float> ? 0 : std::abs(want[n]) * o.std[c] / 256);
    if (std::abs(a - b) <= tolerance) continue;
    if (view < int64_t(policies.size())) {  // on the threshold itself rounding decides
      const double threshold = policies[view].solarize_threshold;
      if (policies[view].solarize > 0 && std::abs(a - (1 - b)) <= tolerance &&
          std::min(std::abs(b - threshold), std::abs(1 - b - threshold)) <= tolerance)
        continue;
    }
    FAIL() << "view " << view << ", image " << i << ", channel " << c << ", element " << n << ": " << a
           << " instead of " << b;
  }
}

template <class T>
void expect_equal(const Batch& batch, const std::vector<ViewPolicy>& policies, const AugmentOptions& options) {
  const int64_t count = int64_t(batch.images.size()), views = int64_t(policies.size());
  const int64_t elements = count * options.channels * options.size * options.size;
  const DeviceBatch device(batch);
  const DeviceArray<char> scratch(cuda::augment_scratch_bytes(device.views(), options));
  std::vector<char> host_scratch(cpu::augment_scratch_bytes(batch.views(), options, {}));
  const Scratch lent{host_scratch.data(), int64_t(host_scratch.size())};

  std::vector<float> want(views * elements);
  cpu::augment<float>(want.data(), batch.views(), batch.ids(), {policies.data(), views}, options, lent, {});
  const DeviceArray<T> out(views * elements);
  cuda::augment<T>(out.data(), device.views(), batch.ids(), {policies.data(), views}, options, scratch.scratch(),
                   nullptr);
  PAL_CUDA_CHECK(cudaDeviceSynchronize());
  expect_pixels(out.host(), want, batch, policies, options);

  std::vector<float> center(elements);
  cpu::center_view<float>(center.data(), batch.views(), options, lent, {});
  const DeviceArray<T> device_center(elements);
  cuda::center_view<T>(device_center.data(), device.views(), options, scratch.scratch(), nullptr);
  PAL_CUDA_CHECK(cudaDeviceSynchronize());
  expect_pixels(device_center.host(), center, batch, {}, options);
}

class AugmentCuda : public CudaTest {};

TEST_F(AugmentCuda, EqualsTheCpu) {
  const std::array<std::array<int32_t, 2>, 6> shapes = {{{1, 1}, {28, 28}, {32, 32}, {37, 53}, {5, 90}, {90, 5}}};
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (const int32_t size : {1, 2, 17, 32, 45}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " size " + std::to_string(size));
      Random r(seed, Purpose::bench, uint64_t(size));
      Batch batch;
      for (const auto& shape : shapes)
        batch.add(r, shape[0], shape[1], r.below(3) ? 3 : 1, int64_t(r.below(1ull << 40)));
      const std::vector<ViewPolicy> policies = {random_policy(r), random_policy(r)};
      const AugmentOptions options = random_options(r, size);
      if (seed % 2 == 0)
        expect_equal<float>(batch, policies, options);
      else
        expect_equal<bf16>(batch, policies, options);
    }
  }
}

// Several tiles of the blur, with a margin of three pixels; all steps at once.
TEST_F(AugmentCuda, AllStepsOverTiles) {
  Random r(11, Purpose::bench);
  SCOPED_TRACE("seed 11");
  Batch batch;
  batch.add(r, 80, 60, 3, 5);
  batch.add(r, 30, 33, 1, 6);
  ViewPolicy all;
  all.jitter = all.blur = all.solarize = 1;
  all.gray = 0.5f;
  all.blur_sigma_min = 1.5f;
  all.blur_sigma_max = 3;
  for (const Layout layout : {Layout::nchw, Layout::channels_last}) {
    AugmentOptions options = random_options(r, 70);
    options.channels = 3;
    options.layout = layout;
    expect_equal<float>(batch, {all}, options);
  }
}

// More images than one launch takes, and a view stride that leaves a gap.
TEST_F(AugmentCuda, ManyImagesAndAGapBetweenViews) {
  Random r(12, Purpose::bench);
  SCOPED_TRACE("seed 12");
  Batch batch;
  for (int i = 0; i < 67; ++i) batch.add(r, 4 + i % 3, 5, i % 4 ? 3 : 1, i);
  const std::vector<ViewPolicy> policies = {random_policy(r), random_policy(r)};
  AugmentOptions options = random_options(r, 6);
  expect_equal<float>(batch, policies, options);

  const int64_t elements = 67 * int64_t(options.channels) * 36, gap = 5;
  const DeviceBatch device(batch);
  const DeviceArray<char> scratch(cuda::augment_scratch_bytes(device.views(), options));
  const DeviceArray<float> close(2 * elements), apart(std::vector<float>(2 * elements + gap, 7.0f));
  cuda::augment<float>(close.data(), device.views(), batch.ids(), {policies.data(), 2}, options, scratch.scratch(),
                       nullptr);
  options.view_stride = elements + gap;
  cuda::augment<float>(apart.data(), device.views(), batch.ids(), {policies.data(), 2}, options, scratch.scratch(),
                       nullptr);
  PAL_CUDA_CHECK(cudaDeviceSynchronize());
  const std::vector<float> a = close.host(), b = apart.host();
  EXPECT_TRUE(std::equal(a.begin(), a.begin() + elements, b.begin()));
  EXPECT_TRUE(std::equal(a.begin() + elements, a.end(), b.begin() + elements + gap));
  EXPECT_EQ(std::vector<float>(b.begin() + elements, b.begin() + elements + gap), std::vector<float>(gap, 7.0f));
}

// Parts as a decoder gives them, cut out and reduced, with parameters of the host; more of them than one launch takes.
TEST_F(AugmentCuda, PartsEqualTheCpu) {
  for (const uint64_t seed : {21, 22, 23}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random r(seed, Purpose::bench);
    const std::vector<ViewPolicy> policies = {random_policy(r)};
    const AugmentOptions options = random_options(r, 7);
    Batch batch;
    std::vector<ImagePart> parts;
    std::vector<ViewParams> params;
    for (int64_t i = 0; i < 35; ++i) {
      const int32_t height = 9 + int32_t(r.below(30)), width = 9 + int32_t(r.below(30)), unit = 1 << r.below(3);
      params.push_back(draw_view_params(policies[0], options.seed, options.step, uint64_t(i), 0, height, width));
      const CropBox& crop = params.back().crop;
      ImagePart part{{}, crop.top / unit, crop.left / unit, unit};
      part.top -= int32_t(r.below(uint64_t(part.top) + 1));
      const int32_t rows = (crop.top + crop.height + unit - 1) / unit - part.top;
      const int32_t columns = (crop.left + crop.width + unit - 1) / unit - part.left;
      batch.add(r, rows, columns, r.below(3) ? 3 : 1, i);
      parts.push_back(part);
    }
    const DeviceBatch device(batch);
    const int64_t elements = int64_t(options.channels) * options.size * options.size;
    std::vector<float> want(parts.size() * size_t(elements));
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].pixels = batch.images[i];
      std::vector<char> room(cpu::augment_scratch_bytes({&batch.images[i], 1}, options, {1}));
      cpu::augment_part(want.data() + int64_t(i) * elements, parts[i], params[i], options,
                        {room.data(), int64_t(room.size())}, best_isa());
      parts[i].pixels = device.images[i];
    }
    const Span<const ImagePart> some{parts.data(), int64_t(parts.size())};
    const DeviceArray<char> scratch(cuda::augment_parts_scratch_bytes(some, options));
    const DeviceArray<float> out(int64_t(want.size()));
    cuda::augment_parts<float>(out.data(), some, {params.data(), some.size}, options, scratch.scratch(), nullptr);
    PAL_CUDA_CHECK(cudaDeviceSynchronize());
    expect_pixels(out.host(), want, batch, policies, options);
  }
}

}  // namespace
}  // namespace pal::kernels
