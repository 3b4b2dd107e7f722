// augment_cases: random images, policies and options for the tests of augment.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/augment.h"
#include "kernels/base/philox.h"

namespace pal::kernels {

struct Batch {
  std::vector<std::vector<uint8_t>> pixels;
  std::vector<ImageView> images;
  std::vector<int64_t> samples;

  void add(Random& random, int32_t height, int32_t width, int32_t channels, int64_t sample) {
    std::vector<uint8_t> p(size_t(height) * width * channels);
    // Blocks of flat color among the noise: pixels without hue, and pure black and white.
    const bool flat = random.next_float() < 0.3f;
    for (uint8_t& x : p) x = flat ? uint8_t(255 * random.below(2)) : uint8_t(random.next_u32());
    pixels.push_back(std::move(p));
    images.push_back({pixels.back().data(), height, width, channels});
    samples.push_back(sample);
  }
  Span<const ImageView> views() const { return {images.data(), int64_t(images.size())}; }
  Span<const int64_t> ids() const { return {samples.data(), int64_t(samples.size())}; }
};

inline ViewPolicy random_policy(Random& r) {
  ViewPolicy p;
  const auto chance = [&r] { return std::array{0.0f, 0.5f, 1.0f}[r.below(3)]; };
  p.crop_scale_min = r.uniform(0.05f, 1);
  p.crop_scale_max = r.uniform(p.crop_scale_min, 1);
  if (r.below(4) == 0) p.crop_scale_min = p.crop_scale_max = 1;
  p.crop_ratio_min = r.uniform(0.3f, 1);
  p.crop_ratio_max = r.uniform(p.crop_ratio_min, 3);
  p.flip = chance();
  p.jitter = chance();
  p.brightness = r.uniform(0, 1.5f);
  p.contrast = r.uniform(0, 1);
  p.saturation = r.uniform(0, 1);
  p.hue = r.uniform(0, 0.5f);
  p.gray = chance();
  p.blur = chance();
  p.blur_sigma_max = r.uniform(0.2f, 4);
  p.solarize = chance();
  p.solarize_threshold = r.uniform(0, 1);
  return p;
}

inline AugmentOptions random_options(Random& r, int32_t size) {
  AugmentOptions o;
  o.seed = r.next_u64();
  o.step = r.below(1000000);
  o.size = size;
  o.channels = r.below(2) ? 3 : 1;
  o.layout = r.below(2) ? Layout::channels_last : Layout::nchw;
  o.interpolation = r.below(2) ? Interpolation::bicubic : Interpolation::bilinear;
  for (int c = 0; c < 3; ++c) {
    o.mean[c] = r.uniform(0, 1);
    o.std[c] = r.uniform(0.2f, 1.2f);
  }
  return o;
}

}  // namespace pal::kernels
