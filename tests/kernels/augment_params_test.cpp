// augment_params: the draw order, the ranges, and the frequencies of the random decisions.
#include "kernels/augment_params.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

namespace pal::kernels {
namespace {

constexpr int kDraws = 20000;

ViewParams draw(const ViewPolicy& policy, int sample, uint32_t view = 0, int32_t height = 100, int32_t width = 80) {
  return draw_view_params(policy, 11, 3, uint64_t(sample), view, height, width);
}

// Five standard deviations of a binomial: a correct generator fails once in two million runs.
void expect_frequency(const std::function<bool(const ViewParams&)>& event, const ViewPolicy& policy, double p,
                      const char* name) {
  int count = 0;
  for (int s = 0; s < kDraws; ++s) count += event(draw(policy, s));
  EXPECT_NEAR(double(count) / kDraws, p, 5 * std::sqrt(p * (1 - p) / kDraws)) << name;
}

TEST(AugmentParams, Frequencies) {
  ViewPolicy p;
  p.flip = 0.5f;
  p.jitter = 0.8f;
  p.gray = 0.2f;
  p.blur = 0.1f;
  p.solarize = 0.3f;
  expect_frequency([](const ViewParams& v) { return v.flip; }, p, 0.5, "flip");
  expect_frequency([](const ViewParams& v) { return v.jitter; }, p, 0.8, "jitter");
  expect_frequency([](const ViewParams& v) { return v.gray; }, p, 0.2, "gray");
  expect_frequency([](const ViewParams& v) { return v.blur; }, p, 0.1, "blur");
  expect_frequency([](const ViewParams& v) { return v.solarize; }, p, 0.3, "solarize");
  expect_frequency([](const ViewParams& v) { return v.flip && v.gray && v.jitter; }, p, 0.5 * 0.2 * 0.8, "independent");
  expect_frequency([](const ViewParams& v) { return v.jitter_factor[kBrightness] < 0.8f; }, p, 0.25, "brightness");
  expect_frequency([](const ViewParams& v) { return v.jitter_factor[kSaturation] < 1.1f; }, p, 0.75, "saturation");
  expect_frequency([](const ViewParams& v) { return v.jitter_factor[kHue] < -0.05f; }, p, 0.25, "hue");
}

TEST(AugmentParams, CertainAndImpossible) {
  ViewPolicy always, never;
  always.flip = always.jitter = always.gray = always.blur = always.solarize = 1;
  never.flip = never.jitter = never.gray = never.blur = never.solarize = 0;
  for (int s = 0; s < 1000; ++s) {
    const ViewParams a = draw(always, s), n = draw(never, s);
    EXPECT_TRUE(a.flip && a.jitter && a.gray && a.blur && a.solarize);
    EXPECT_FALSE(n.flip || n.jitter || n.gray || n.blur || n.solarize);
  }
}

TEST(AugmentParams, EveryOrderOfTheJitterIsAsLikely) {
  std::map<std::array<int, 4>, int> orders;
  for (int s = 0; s < kDraws; ++s) {
    const ViewParams v = draw({}, s);
    ++orders[{v.jitter_order[0], v.jitter_order[1], v.jitter_order[2], v.jitter_order[3]}];
  }
  EXPECT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders) {
    EXPECT_NEAR(count, kDraws / 24.0, 5 * std::sqrt(kDraws / 24.0));
    std::array<int, 4> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, (std::array<int, 4>{0, 1, 2, 3}));
  }
}

TEST(AugmentParams, FactorsStayInRange) {
  ViewPolicy p;
  p.brightness = 1.5f;  // the factor stops at 0
  for (int s = 0; s < kDraws; ++s) {
    const ViewParams v = draw(p, s);
    EXPECT_GE(v.jitter_factor[kBrightness], 0);
    EXPECT_LE(v.jitter_factor[kBrightness], 2.5f);
    EXPECT_GE(v.jitter_factor[kContrast], 0.6f);
    EXPECT_LE(v.jitter_factor[kContrast], 1.4f);
    EXPECT_LE(std::abs(v.jitter_factor[kHue]), 0.1f);
    EXPECT_GE(v.blur_sigma, 0.1f);
    EXPECT_LE(v.blur_sigma, 2.0f);
  }
}

// Over shapes in which the tries succeed, the crop's area and ratio have the policy's distribution.
TEST(AugmentParams, CropsHaveTheAskedAreaAndRatio) {
  ViewPolicy p;
  p.crop_scale_min = 0.08f;
  p.crop_scale_max = 0.4f;
  double share = 0, log_ratio = 0, top = 0;
  for (int s = 0; s < kDraws; ++s) {
    const CropBox b = draw(p, s, 0, 1000, 1000).crop;
    ASSERT_TRUE(b.top >= 0 && b.left >= 0 && b.height > 0 && b.width > 0);
    ASSERT_TRUE(b.top + b.height <= 1000 && b.left + b.width <= 1000);
    const double ratio = double(b.width) / b.height;
    ASSERT_GT(ratio, 0.74);
    ASSERT_LT(ratio, 1.35);
    share += b.height * double(b.width) / 1e6;
    log_ratio += std::log(ratio);
    top += b.top / double(1000 - b.height);
  }
  EXPECT_NEAR(share / kDraws, 0.24, 5 * 0.32 / std::sqrt(12.0 * kDraws));
  EXPECT_NEAR(log_ratio / kDraws, 0, 5 * std::log(16.0 / 9) / std::sqrt(12.0 * kDraws) + 1e-4);
  EXPECT_NEAR(top / kDraws, 0.5, 5 / std::sqrt(12.0 * kDraws) + 1e-3);
}

TEST(AugmentParams, ImpossibleCropFallsBackToTheCenter) {
  ViewPolicy p;
  p.crop_scale_min = 0.9f;  // 90 % of a 10 x 1000 image has no allowed ratio
  for (int s = 0; s < 100; ++s) {
    const CropBox wide = draw(p, s, 0, 10, 1000).crop, tall = draw(p, s, 0, 1000, 10).crop;
    EXPECT_EQ(wide.height, 10);
    EXPECT_EQ(wide.width, 13);  // 10 · 4/3
    EXPECT_EQ(wide.top, 0);
    EXPECT_EQ(wide.left, (1000 - 13) / 2);
    EXPECT_EQ(tall.width, 10);
    EXPECT_EQ(tall.height, 13);  // 10 / 0.75
    EXPECT_EQ(tall.top, (1000 - 13) / 2);
  }
  p.crop_scale_min = p.crop_scale_max = 1;  // the whole image, whatever its ratio
  EXPECT_EQ(draw(p, 0, 0, 10, 1000).crop.width, 1000);
}

// The draw order that every implementation must follow, word by word.
TEST(AugmentParams, WordsOfTheStream) {
  ViewPolicy p;
  p.crop_scale_max = 0.5f;
  Random r(11, Purpose::augment, 3, 77, 2);
  std::array<uint32_t, 16> w;
  for (uint32_t& x : w) x = r.next_u32();
  const auto unit = [&](int i) { return float(w[i] >> 8) / 16777216.0f; };
  const ViewParams v = draw(p, 77, 2, 1000, 1000);
  EXPECT_EQ(v.flip, unit(0) < 0.5f);
  EXPECT_EQ(v.jitter, unit(1) < 0.8f);
  EXPECT_EQ(v.jitter_order[0], int((uint64_t(w[2]) * 24 >> 32) % 4));
  EXPECT_EQ(v.gray, unit(3) < 0.2f);
  EXPECT_NEAR(v.jitter_factor[kBrightness], 0.6 + 0.8 * unit(4), 1e-6);
  EXPECT_NEAR(v.jitter_factor[kContrast], 0.6 + 0.8 * unit(5), 1e-6);
  EXPECT_NEAR(v.jitter_factor[kSaturation], 0.8 + 0.4 * unit(6), 1e-6);
  EXPECT_NEAR(v.jitter_factor[kHue], -0.1 + 0.2 * unit(7), 1e-6);
  EXPECT_NEAR(v.blur_sigma, 0.1 + 1.9 * unit(9), 1e-6);
  const double area = 1e6 * (0.08 + 0.42 * unit(12)), ratio = std::exp(std::log(0.75) + unit(13) * std::log(16.0 / 9));
  EXPECT_EQ(v.crop.width, int(std::lround(std::sqrt(area * ratio))));
  EXPECT_EQ(v.crop.height, int(std::lround(std::sqrt(area / ratio))));
  EXPECT_EQ(v.crop.top, int(uint64_t(w[14]) * (1000 - v.crop.height + 1) >> 32));
  EXPECT_EQ(v.crop.left, int(uint64_t(w[15]) * (1000 - v.crop.width + 1) >> 32));
}

}  // namespace
}  // namespace pal::kernels
