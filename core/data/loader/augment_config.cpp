// augment_config: keys to policies; the config has checked the values.
#include "core/data/loader/augment_config.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace pal::data {

std::vector<kernels::ViewPolicy> view_policies(const config::Config& config) {
  const auto per_view = [&](const char* key, size_t view) {
    const std::vector<double> list = config.real_list(key);
    return static_cast<float>(list[std::min(view, list.size() - 1)]);
  };
  const auto item = [&](const char* key, size_t i) { return static_cast<float>(config.real_list(key)[i]); };
  const auto large = static_cast<size_t>(config.integer("augment.views"));
  std::vector<kernels::ViewPolicy> views(static_cast<size_t>(total_views(config)));
  for (size_t v = 0; v < views.size(); ++v) {
    kernels::ViewPolicy& p = views[v];
    const char* scale = v < large ? "augment.crop_scale" : "augment.small_crop_scale";
    p.crop_scale_min = item(scale, 0);
    p.crop_scale_max = item(scale, 1);
    p.crop_ratio_min = item("augment.crop_ratio", 0);
    p.crop_ratio_max = item("augment.crop_ratio", 1);
    p.flip = per_view("augment.flip", v);
    p.jitter = per_view("augment.jitter", v);
    p.brightness = item("augment.jitter_strength", 0);
    p.contrast = item("augment.jitter_strength", 1);
    p.saturation = item("augment.jitter_strength", 2);
    p.hue = item("augment.jitter_strength", 3);
    p.gray = per_view("augment.gray", v);
    p.blur = per_view("augment.blur", v);
    p.blur_sigma_min = item("augment.blur_sigma", 0);
    p.blur_sigma_max = item("augment.blur_sigma", 1);
    p.solarize = per_view("augment.solarize", v);
  }
  return views;
}

int64_t total_views(const config::Config& config) {
  return config.integer("augment.views") + config.integer("augment.small_views");
}

ViewSet view_set(const config::Config& config, const Dataset& data) {
  ViewSet views;
  views.policies = view_policies(config);
  views.large = augment_options(config, data);
  views.small_views = config.integer("augment.small_views");
  views.small_size = static_cast<int32_t>(config.integer("augment.small_size"));
  views.feature_noise = config.real("augment.noise") * data.spread();
  views.decode = config.text("data.decode") == "full" ? Decode::full : Decode::scaled;
  return views;
}

kernels::AugmentOptions augment_options(const config::Config& config, const Dataset& data) {
  kernels::AugmentOptions options;
  options.seed = static_cast<uint64_t>(config.integer("train.seed"));
  const std::vector<int32_t> shape = data.shape();
  options.size = static_cast<int32_t>(config.integer("data.size"));
  if (options.size == 0) {
    PAL_CHECK(!shape.empty() && shape[0] > 0,
              "data.size is 0, which takes the height of the images, but they have different heights", "",
              "set data.size to the side of the views in pixels");
    options.size = shape[0];
  }
  options.interpolation = config.text("augment.interpolation") == "bicubic" ? kernels::Interpolation::bicubic
                                                                            : kernels::Interpolation::bilinear;
  options.channels = !shape.empty() && shape[2] == 1 ? 1 : 3;
  if (data.encoding() == Encoding::features) options.size = 1, options.channels = shape[2];
  const std::vector<double> mean = config.real_list("augment.mean"), std = config.real_list("augment.std");
  for (size_t c = 0; c < 3; ++c) {
    options.mean[c] = static_cast<float>(mean[std::min(c, mean.size() - 1)]);
    options.std[c] = static_cast<float>(std[std::min(c, std.size() - 1)]);
  }
  return options;
}

}  // namespace pal::data
