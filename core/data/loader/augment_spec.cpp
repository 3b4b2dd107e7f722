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

int32_t suggested_size(const Dataset& data) {
  const ImageSides sides = data.sides();
  const int32_t side = std::min(sides.height.median, sides.width.median);
  if (side == 0) return 0;
  int32_t size = 32;
  for (const int32_t usual : {48, 64, 96, 128, 160, 192, 224}) size = usual <= side ? usual : size;
  return size;
}

namespace {
void check_one_height(const Dataset& data) {
  if (data.shape()[0] > 0) return;
  const SideRange height = data.sides().height;
  const bool known = height.max > 0;
  const std::string range = std::to_string(height.min) + " to " + std::to_string(height.max);
  throw Error(Exit::usage, "data.size is 0, but " +
                               (known ? "the images have heights of " + range + " pixels"
                                      : std::string("the data set does not hold the height of its images")) +
                               "; set data.size to the side of the views in pixels" +
                               (known ? ", for instance data.size=" + std::to_string(suggested_size(data)) : ""));
}
}  // namespace

kernels::AugmentOptions augment_options(const AugmentSpec& spec, const Dataset& data) {
  kernels::AugmentOptions options;
  options.seed = spec.seed;
  const std::vector<int32_t> shape = data.shape();
  options.size = spec.size;
  if (options.size == 0) {
    check_one_height(data);
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
