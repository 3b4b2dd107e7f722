// augment: equal to the per-pixel reference for random policies; independent of batch, threads and instruction set.
#include "kernels/augment.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/augment_cases.h"
#include "tests/kernels/augment_reference.h"

namespace pal::kernels {
namespace {

template <class T>
std::vector<T> run(const Batch& batch, const std::vector<ViewPolicy>& policies, const AugmentOptions& options, Cpu cpu = {}) {
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
        const auto normalise = [&](double y) { return (y - options.mean[c]) / options.std[c]; };
        double want = normalise(x);
        if (params.solarise) {
          want = normalise(x >= params.solarise_threshold ? 1 - x : x);
          const double other = normalise(x >= params.solarise_threshold ? x : 1 - x);
          // On the threshold itself rounding decides.
          if (std::abs(x - params.solarise_threshold) < tolerance && std::abs(got[k] - other) < tolerance) continue;
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
      for (const auto& shape : shapes) batch.add(r, shape[0], shape[1], r.below(3) ? 3 : 1, int64_t(r.below(1ull << 40)));
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
            std::vector<float>(base.begin() + base.size() / 2, base.end())) << "two views of one policy";
  ++options.step;
  EXPECT_NE(base, run<float>(batch, policies, options));
  --options.step;
  ++options.seed;
  EXPECT_NE(base, run<float>(batch, policies, options));
  --options.seed;
  ++batch.samples[0];
  EXPECT_NE(base, run<float>(batch, policies, options));
}

TEST(Augment, CentreViewIsTheCentredSquare) {
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
  cpu::centre_view<double>(out.data(), batch.views(), options, {scratch.data(), int64_t(scratch.size())}, {2});
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

}  // namespace
}  // namespace pal::kernels
