// augment: equal to the per-pixel reference for random policies; independent of batch, threads and instruction set.
#include "kernels/augment.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/augment_cases.h"
#include "tests/kernels/augment_reference.h"

namespace pal::kernels {
namespace {

template <class T>
std::vector<T> run(const Batch& batch, const std::vector<ViewPolicy>& policies, const AugmentOptions& options,
                   Cpu cpu = {}) {
  std::vector<T> out(policies.size() * batch.images.size() * options.channels * options.size * options.size, T(-99));
  std::vector<char> scratch(cpu::augment_scratch_bytes(batch.views(), options, cpu));
  cpu::augment<T>(out.data(), batch.views(), batch.ids(), {policies.data(), int64_t(policies.size())}, options,
                  {scratch.data(), int64_t(scratch.size())}, cpu);
  return out;
}

// Compares every pixel of every view with the reference.
template <class T>
void expect_reference(const Batch& batch, const std::vector<ViewPolicy>& policies, const AugmentOptions& options,
                      const std::vector<T>& out, double tolerance) {
  const int64_t size = options.size, channels = options.channels, count = int64_t(batch.images.size());
  for (int64_t v = 0; v < int64_t(policies.size()); ++v) {
    for (int64_t i = 0; i < count; ++i) {
      const ImageView& image = batch.images[i];
      const ViewParams params = draw_view_params(policies[v], options.seed, options.step, uint64_t(batch.samples[i]),
                                                 uint32_t(v), image.height, image.width);
      const reference::Picture p = reference::render(image, params, options);
      const T* got = out.data() + (v * count + i) * channels * size * size;
      for (int64_t k = 0; k < channels * size * size; ++k) {
        const int64_t c = options.layout == Layout::nchw ? k / (size * size) : k % channels;
        const int64_t at = options.layout == Layout::nchw ? k % (size * size) : k / channels;
        const double x = p.at(int(at / size), int(at % size), p.channels == 1 ? 0 : int(c));
        const auto normalize = [&](double y) { return (y - options.mean[c]) / options.std[c]; };
        double want = normalize(x);
        if (params.solarize) {
          want = normalize(x >= params.solarize_threshold ? 1 - x : x);
          const double other = normalize(x >= params.solarize_threshold ? x : 1 - x);
          // On the threshold itself rounding decides.
          if (std::abs(x - params.solarize_threshold) < tolerance && std::abs(got[k] - other) < tolerance) continue;
        }
        ASSERT_NEAR(got[k], want, tolerance) << "view " << v << " image " << i << " channel " << c << " pixel " << at
                                             << " of size " << size << ", " << image.height << "x" << image.width;
      }
    }
  }
}

TEST(Augment, EqualsReference) {
  const std::array<std::array<int32_t, 2>, 6> shapes = {{{1, 1}, {28, 28}, {32, 32}, {37, 53}, {5, 90}, {90, 5}}};
  for (uint64_t seed = 0; seed < 12; ++seed) {
    for (const int32_t size : {28, 32, 48}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " size " + std::to_string(size));
      Random r(seed, Purpose::bench, uint64_t(size));
      Batch batch;
      for (const auto& shape : shapes)
        batch.add(r, shape[0], shape[1], r.below(3) ? 3 : 1, int64_t(r.below(1ull << 40)));
      const std::vector<ViewPolicy> policies = {random_policy(r), random_policy(r), random_policy(r)};
      const AugmentOptions options = random_options(r, size);
      const Isa isa = Isa(r.below(uint64_t(best_isa()) + 1));
      SCOPED_TRACE(isa_name(isa));
      expect_reference(batch, policies, options, run<double>(batch, policies, options, {1, isa}), 1e-12);
      expect_reference(batch, policies, options, run<float>(batch, policies, options, {1, isa}), 2e-5);
    }
  }
}

TEST(Augment, OddSizesEqualReference) {
  for (const int32_t size : {1, 2, 3, 7, 17, 65}) {
    SCOPED_TRACE("size " + std::to_string(size));
    Random r(uint64_t(size), Purpose::bench);
    Batch batch;
    batch.add(r, 2, 3, 3, 1);
    batch.add(r, 41, 19, 1, 2);
    batch.add(r, 23, 70, 3, 3);
    const std::vector<ViewPolicy> policies = {random_policy(r), random_policy(r)};
    const AugmentOptions options = random_options(r, size);
    expect_reference(batch, policies, options, run<double>(batch, policies, options), 1e-12);
  }
}

TEST(Augment, IndependentOfBatchThreadsAndSlices) {
  Random r(5, Purpose::bench);
  Batch whole;
  for (int i = 0; i < 11; ++i) whole.add(r, 20 + i, 35 - i, i % 3 ? 3 : 1, 1000 + 7 * i);
  const std::vector<ViewPolicy> policies = {random_policy(r), random_policy(r), random_policy(r)};
  AugmentOptions options = random_options(r, 24);
  const std::vector<float> want = run<float>(whole, policies, options);
  EXPECT_EQ(want, run<float>(whole, policies, options, {2}));
  EXPECT_EQ(want, run<float>(whole, policies, options, {7}));

  // Each image alone, written into its place of the whole batch.
  const int64_t pixels = int64_t(options.channels) * options.size * options.size;
  options.view_stride = int64_t(whole.images.size()) * pixels;
  std::vector<float> parts(want.size());
  for (size_t i = 0; i < whole.images.size(); ++i) {
    std::vector<char> scratch(cpu::augment_scratch_bytes({&whole.images[i], 1}, options, {}));
    cpu::augment<float>(parts.data() + int64_t(i) * pixels, {&whole.images[i], 1}, {&whole.samples[i], 1},
                        {policies.data(), 3}, options, {scratch.data(), int64_t(scratch.size())}, {});
  }
  EXPECT_EQ(want, parts);
}

TEST(Augment, StepSampleAndSeedMatter) {
  Random r(6, Purpose::bench);
  Batch batch;
  batch.add(r, 40, 40, 3, 4);
  const std::vector<ViewPolicy> policies = {{}, {}};
  AugmentOptions options = random_options(r, 16);
  const auto base = run<float>(batch, policies, options);
  EXPECT_NE(std::vector<float>(base.begin(), base.begin() + base.size() / 2),
            std::vector<float>(base.begin() + base.size() / 2, base.end()))
      << "two views of one policy";
  ++options.step;
  EXPECT_NE(base, run<float>(batch, policies, options));
  --options.step;
  ++options.seed;
  EXPECT_NE(base, run<float>(batch, policies, options));
  --options.seed;
  ++batch.samples[0];
  EXPECT_NE(base, run<float>(batch, policies, options));
}

TEST(Augment, CenterViewIsTheCenteredSquare) {
  Random r(8, Purpose::bench);
  Batch batch;
  batch.add(r, 37, 53, 3, 0);
  batch.add(r, 30, 11, 1, 0);
  const std::array<CropBox, 2> boxes = {{{0, 8, 37, 37}, {9, 0, 11, 11}}};
  AugmentOptions options = random_options(r, 20);
  options.channels = 3;
  options.layout = Layout::nchw;
  std::vector<double> out(2 * 3 * 20 * 20);
  std::vector<char> scratch(cpu::augment_scratch_bytes(batch.views(), options, {2}));
  cpu::center_view<double>(out.data(), batch.views(), options, {scratch.data(), int64_t(scratch.size())}, {2});
  for (int i = 0; i < 2; ++i) {
    ViewParams params;
    params.crop = boxes[i];
    const auto p = reference::render(batch.images[i], params, options);
    for (int k = 0; k < 1200; ++k) {
      const double x = p.at(k % 400 / 20, k % 20, p.channels == 1 ? 0 : k / 400);
      ASSERT_NEAR(out[i * 1200 + k], (x - options.mean[k / 400]) / options.std[k / 400], 1e-12);
    }
  }
}

TEST(Augment, RefusesBadInput) {
  Random r(9, Purpose::bench);
  Batch batch;
  batch.add(r, 4, 4, 3, 0);
  AugmentOptions options;
  options.size = 8;
  const auto message = [&](const std::vector<ViewPolicy>& policies, const AugmentOptions& o) {
    try {
      run<float>(batch, policies, o);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message({{}}, options), "no error");
  ViewPolicy policy;
  policy.blur = 1.5f;
  EXPECT_NE(message({policy}, options).find("probability of blur: 1.5"), std::string::npos);
  policy = {};
  policy.crop_scale_min = NAN;
  EXPECT_NE(message({policy}, options).find("share of the area: nan"), std::string::npos);
  AugmentOptions bad = options;
  bad.channels = 2;
  EXPECT_NE(message({{}}, bad).find("channels of the views: 2"), std::string::npos);
  bad = options;
  bad.std[1] = 0;
  EXPECT_NE(message({{}}, bad).find("std of a channel: 0"), std::string::npos);
  bad = options;
  bad.view_stride = 5;
  EXPECT_NE(message({{}}, bad).find("view stride: 5"), std::string::npos);
  batch.images[0].channels = 4;
  EXPECT_NE(message({{}}, options).find("channels of an image: 4"), std::string::npos);
  batch.images[0].channels = 3;
  batch.samples.clear();
  EXPECT_NE(message({{}}, options).find("number of sample ids: 0"), std::string::npos);
  batch.samples = {0};
  char little[64];
  float out[192];
  const ViewPolicy plain;
  EXPECT_THROW(cpu::augment<float>(out, batch.views(), batch.ids(), {&plain, 1}, options, {little, 64}, {}), Error);
}

// A part of an image gives the same bits as the whole of it, wherever it begins.
TEST(Augment, APartGivesTheBitsOfTheWhole) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random r(seed, Purpose::bench);
    Batch batch;
    batch.add(r, 40 + int32_t(r.below(40)), 40 + int32_t(r.below(40)), 3, int64_t(seed));
    const std::vector<ViewPolicy> policies = {random_policy(r)};
    const AugmentOptions options = random_options(r, 20);
    const ImageView& whole = batch.images[0];
    const ViewParams params =
        draw_view_params(policies[0], options.seed, options.step, seed, 0, whole.height, whole.width);
    ImagePart part;
    part.top = int32_t(r.below(uint64_t(params.crop.top) + 1));
    part.left = int32_t(r.below(uint64_t(params.crop.left) + 1));
    const int32_t height = params.crop.top + params.crop.height - part.top,
                  width = params.crop.left + params.crop.width - part.left;
    std::vector<uint8_t> pixels;
    for (int32_t y = 0; y < height; ++y) {
      const uint8_t* row = whole.data + (int64_t(part.top + y) * whole.width + part.left) * 3;
      pixels.insert(pixels.end(), row, row + 3 * width);
    }
    part.pixels = {pixels.data(), height, width, 3};
    std::vector<float> got(size_t(options.channels) * 20 * 20);
    std::vector<char> scratch(cpu::augment_scratch_bytes({&part.pixels, 1}, options, {1}));
    const Scratch room{scratch.data(), int64_t(scratch.size())};
    cpu::augment_part(got.data(), part, params, options, room, best_isa());
    EXPECT_EQ(got, run<float>(batch, policies, options));
    part.top += 1 + params.crop.top - part.top;  // begins inside the crop
    EXPECT_THROW(cpu::augment_part(got.data(), part, params, options, room, best_isa()), Error);
  }
}

// An image of blocks of `unit` equal pixels and the image of those blocks are the same picture, also for cut blocks.
TEST(Augment, AReducedPartShowsTheSamePicture) {
  Random r(3, Purpose::bench);
  for (const int32_t unit : {2, 4, 8}) {
    const int32_t blocks = 12, side = blocks * unit;
    std::vector<uint8_t> small(size_t(blocks) * blocks * 3), large(size_t(side) * side * 3);
    for (int32_t y = 0; y < blocks; ++y) {  // a ramp: the resize of either is the ramp again, inside
      for (int32_t x = 0; x < blocks; ++x) {
        for (int c = 0; c < 3; ++c) small[size_t((y * blocks + x) * 3 + c)] = uint8_t(10 * x + 8 * y + 5 * c);
      }
    }
    for (int32_t y = 0; y < side; ++y) {
      for (int32_t x = 0; x < side; ++x) {
        for (int c = 0; c < 3; ++c)
          large[size_t((y * side + x) * 3 + c)] = small[size_t((y / unit * blocks + x / unit) * 3 + c)];
      }
    }
    AugmentOptions options;
    options.size = 6;
    for (int trial = 0; trial < 50; ++trial) {
      ViewParams params;
      params.crop.height = int32_t(6 * unit + r.below(uint64_t(side - 6 * unit)));
      params.crop.width = int32_t(6 * unit + r.below(uint64_t(side - 6 * unit)));
      params.crop.top = int32_t(r.below(uint64_t(side - params.crop.height) + 1));
      params.crop.left = int32_t(r.below(uint64_t(side - params.crop.width) + 1));
      params.flip = r.below(2) == 1;
      std::vector<float> a(3 * 36), b(3 * 36);
      const ImagePart reduced{{small.data(), blocks, blocks, 3}, 0, 0, unit},
          whole{{large.data(), side, side, 3}, 0, 0, 1};
      std::vector<char> scratch(cpu::augment_scratch_bytes({&whole.pixels, 1}, options, {1}));
      cpu::augment_part(a.data(), reduced, params, options, {scratch.data(), int64_t(scratch.size())}, best_isa());
      cpu::augment_part(b.data(), whole, params, options, {scratch.data(), int64_t(scratch.size())}, best_isa());
      for (int y = 1; y < 5; ++y) {
        for (int x = 1; x < 5; ++x)
          EXPECT_NEAR(a[size_t(y * 6 + x)], b[size_t(y * 6 + x)], 2.5 / 255) << "unit " << unit << " trial " << trial;
      }
    }
  }
}

}  // namespace
}  // namespace pal::kernels
