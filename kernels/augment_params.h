// augment_params: what happens to one view, drawn from its stream of random numbers; the only place that defines the
// draw order.
//
// Order:  the words of stream (seed, augment, step, sample, view) are, whatever the policy:
//           0 flip   1 jitter   2 order of the jitter   3 gray   4–7 factors of brightness, contrast, saturation, hue
//           8 blur   9 sigma   10 solarize   11 not used   then 4 for each try of the crop: area, ratio, top, left
//         so that switching one step on or off changes no other. Host and device draw alike.
// Math:   the distributions are those of torchvision's RandomResizedCrop, ColorJitter and GaussianBlur.
#pragma once

#include <cmath>

#include "kernels/augment.h"
#include "kernels/base/philox.h"

namespace pal::kernels {

struct CropBox {
  int32_t top = 0, left = 0, height = 0, width = 0;
};

enum JitterStep : int8_t { kBrightness, kContrast, kSaturation, kHue };

struct ViewParams {
  CropBox crop;
  bool flip = false, jitter = false, gray = false, blur = false, solarize = false;
  int8_t jitter_order[4] = {kBrightness, kContrast, kSaturation, kHue};
  float jitter_factor[4] = {1, 1, 1, 0};  // by JitterStep; these change nothing
  float blur_sigma = 0;
  float solarize_threshold = 1;
};

// About a tenth of the side, odd.
PAL_HOST_DEVICE inline int32_t blur_kernel_size(int32_t size) { return size < 40 ? 3 : 2 * (size / 20) + 1; }

// Centered crop of the image's own shape, or of the nearest shape that the ratios allow.
PAL_HOST_DEVICE inline CropBox fallback_crop(int32_t height, int32_t width, double ratio_min, double ratio_max) {
  CropBox box{0, 0, height, width};
  const double ratio = double(width) / height;
  if (ratio < ratio_min) box.height = int32_t(std::rint(width / ratio_min));
  if (ratio > ratio_max) box.width = int32_t(std::rint(height * ratio_max));
  box.height = box.height < 1 ? 1 : box.height;
  box.width = box.width < 1 ? 1 : box.width;
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

// The square of evaluation.
PAL_HOST_DEVICE inline CropBox center_crop(int32_t height, int32_t width) { return fallback_crop(height, width, 1, 1); }

PAL_HOST_DEVICE inline CropBox draw_crop(Random& random, const ViewPolicy& policy, int32_t height, int32_t width) {
  if (policy.crop_scale_min == 1 && policy.crop_scale_max == 1) return {0, 0, height, width};
  constexpr int kTries = 10;
  const double area = double(height) * width;
  const double log_min = std::log(double(policy.crop_ratio_min)), log_max = std::log(double(policy.crop_ratio_max));
  for (int t = 0; t < kTries; ++t) {
    const double share =
        policy.crop_scale_min + (double(policy.crop_scale_max) - policy.crop_scale_min) * random.next_float();
    const double ratio = std::exp(log_min + (log_max - log_min) * random.next_float());
    const uint64_t top_word = random.next_u32(), left_word = random.next_u32();
    const double w = std::rint(std::sqrt(area * share * ratio)), h = std::rint(std::sqrt(area * share / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    CropBox box{0, 0, int32_t(h), int32_t(w)};
    box.top = int32_t((top_word * uint64_t(height - box.height + 1)) >> 32);
    box.left = int32_t((left_word * uint64_t(width - box.width + 1)) >> 32);
    return box;
  }
  return fallback_crop(height, width, policy.crop_ratio_min, policy.crop_ratio_max);
}

PAL_HOST_DEVICE inline ViewParams draw_view_params(const ViewPolicy& policy, uint64_t seed, uint64_t step,
                                                   uint64_t sample, uint32_t view, int32_t height, int32_t width) {
  Random random(seed, Purpose::augment, step, sample, view);
  ViewParams params;
  params.flip = random.next_float() < policy.flip;
  params.jitter = random.next_float() < policy.jitter;
  // One of the 24 orders: the word's digits in base 4, 3, 2 pick the next step among those left.
  uint64_t order = random.below(24);
  for (int left = 4, i = 0; left > 1; --left, ++i) {
    const int j = i + int(order % left);
    order /= left;
    const int8_t swap = params.jitter_order[i];
    params.jitter_order[i] = params.jitter_order[j];
    params.jitter_order[j] = swap;
  }
  params.gray = random.next_float() < policy.gray;
  const float strength[3] = {policy.brightness, policy.contrast, policy.saturation};
  for (int i = 0; i < 3; ++i) {
    params.jitter_factor[i] = random.uniform(strength[i] < 1 ? 1 - strength[i] : 0, 1 + strength[i]);
  }
  params.jitter_factor[kHue] = random.uniform(-policy.hue, policy.hue);
  params.blur = random.next_float() < policy.blur;
  params.blur_sigma = random.uniform(policy.blur_sigma_min, policy.blur_sigma_max);
  params.solarize = random.next_float() < policy.solarize;
  params.solarize_threshold = policy.solarize_threshold;
  random.next_u32();
  params.crop = draw_crop(random, policy, height, width);
  return params;
}

}  // namespace pal::kernels
