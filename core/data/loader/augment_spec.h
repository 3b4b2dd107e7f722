// augment_spec: the views of a sample as a run asks for them, and what the augment kernel takes of that.
#pragma once

#include <cstdint>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/loader/renderer.h"
#include "kernels/augment.h"

namespace pal::data {

struct Interval {
  double min = 0, max = 0;
};
struct JitterStrength {
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
};

// The settings augment.*, data.size and data.decode. Their defaults are those of core/config/keys.cpp.
struct AugmentSpec {
  int64_t views = 0, small_views = 0;  // per sample: large ones, and small ones beside them
  int32_t size = 0;                    // side of the large views in pixels; 0: the images' own height
  int32_t small_size = 0;
  Interval crop_scale, small_crop_scale, crop_ratio, blur_sigma;
  kernels::Interpolation interpolation = kernels::Interpolation::bilinear;
  std::vector<double> flip, jitter, gray, blur, solarize;  // probabilities per view; the last one repeats
  JitterStrength jitter_strength;
  double noise = 0;               // features: as a share of the columns' mean deviation
  std::vector<double> mean, std;  // of the channels: three numbers, or one for all
  Decode decode = Decode::scaled;
  uint64_t seed = 0;

  int64_t total_views() const { return views + small_views; }
};

// One policy per view, the large ones first.
std::vector<kernels::ViewPolicy> view_policies(const AugmentSpec& spec);
// All that the loader needs to make the views.
ViewSet view_set(const AugmentSpec& spec, const Dataset& data);
// Options of the views of `data`: one channel for gray images (the encoder takes it for three equal ones), else three.
// Throws Error (usage) without a size where the images do not have one height.
kernels::AugmentOptions augment_options(const AugmentSpec& spec, const Dataset& data);
// A usual data.size that is not above the median side of the images, 32 to 224; 0: their sizes are not known.
int32_t suggested_size(const Dataset& data);

}  // namespace pal::data
