#include "core/data/loader/augment_spec.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace pal::data {

std::vector<kernels::ViewPolicy> view_policies(const AugmentSpec& spec) {
  std::vector<kernels::ViewPolicy> views(static_cast<size_t>(spec.total_views()));
  for (size_t v = 0; v < views.size(); ++v) {
    const auto of_view = [&](const std::vector<double>& list) {
      return static_cast<float>(list[std::min(v, list.size() - 1)]);
    };
    const Interval& scale = static_cast<int64_t>(v) < spec.views ? spec.crop_scale : spec.small_crop_scale;
    kernels::ViewPolicy& p = views[v];
    p.crop_scale_min = static_cast<float>(scale.min);
    p.crop_scale_max = static_cast<float>(scale.max);
    p.crop_ratio_min = static_cast<float>(spec.crop_ratio.min);
    p.crop_ratio_max = static_cast<float>(spec.crop_ratio.max);
    p.flip = of_view(spec.flip);
    p.jitter = of_view(spec.jitter);
    p.brightness = static_cast<float>(spec.jitter_strength.brightness);
    p.contrast = static_cast<float>(spec.jitter_strength.contrast);
    p.saturation = static_cast<float>(spec.jitter_strength.saturation);
    p.hue = static_cast<float>(spec.jitter_strength.hue);
    p.gray = of_view(spec.gray);
    p.blur = of_view(spec.blur);
    p.blur_sigma_min = static_cast<float>(spec.blur_sigma.min);
    p.blur_sigma_max = static_cast<float>(spec.blur_sigma.max);
    p.solarize = of_view(spec.solarize);
  }
  return views;
}

ViewSet view_set(const AugmentSpec& spec, const Dataset& data) {
  ViewSet views;
  views.policies = view_policies(spec);
  views.large = augment_options(spec, data);
  views.small_views = spec.small_views;
  views.small_size = spec.small_size;
  views.feature_noise = spec.noise * data.spread();
  views.decode = spec.decode;
  return views;
}

kernels::AugmentOptions augment_options(const AugmentSpec& spec, const Dataset& data) {
  kernels::AugmentOptions options;
  options.seed = spec.seed;
  const std::vector<int32_t> shape = data.shape();
  options.size = spec.size;
  if (options.size == 0) {
    PAL_CHECK(!shape.empty() && shape[0] > 0, "data.size is 0, but the images have different heights", "",
              "set data.size to the side of the views in pixels");
    options.size = shape[0];
  }
  options.interpolation = spec.interpolation;
  options.channels = !shape.empty() && shape[2] == 1 ? 1 : 3;
  if (data.encoding() == Encoding::features) options.size = 1, options.channels = shape[2];
  for (size_t c = 0; c < 3; ++c) {
    options.mean[c] = static_cast<float>(spec.mean[std::min(c, spec.mean.size() - 1)]);
    options.std[c] = static_cast<float>(spec.std[std::min(c, spec.std.size() - 1)]);
  }
  return options;
}

}  // namespace pal::data
