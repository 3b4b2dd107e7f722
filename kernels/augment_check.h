// augment_check: the argument checks that both twins of augment share, and the sizes that follow from them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/augment_impl.h"

namespace pal::kernels::detail {

struct Extent {
  int64_t height = 1, width = 1;
};

inline const ImageView& pixels_of(const ImageView& image) { return image; }
inline const ImageView& pixels_of(const ImagePart& part) { return part.pixels; }

template <class Image>
Extent largest(Span<const Image> images) {
  Extent e;
  for (int64_t i = 0; i < images.size; ++i) {
    e.height = std::max<int64_t>(e.height, pixels_of(images[i]).height);
    e.width = std::max<int64_t>(e.width, pixels_of(images[i]).width);
  }
  return e;
}

// Elements of one view of one image, and from one view of the batch to the next.
inline int64_t view_elements(const AugmentOptions& o) { return int64_t(o.channels) * o.size * o.size; }
inline int64_t view_stride(int64_t images, const AugmentOptions& o) {
  return o.view_stride ? o.view_stride : images * view_elements(o);
}

inline void check_probability(float p, const char* name) {
  PAL_CHECK(p >= 0 && p <= 1, std::string("augment: probability of ") + name, p, "give a number from 0 to 1");
}

inline void check_policy(const ViewPolicy& p) {
  check_probability(p.flip, "flip");
  check_probability(p.jitter, "jitter");
  check_probability(p.gray, "gray");
  check_probability(p.blur, "blur");
  check_probability(p.solarize, "solarize");
  PAL_CHECK(p.crop_scale_min > 0 && p.crop_scale_min <= p.crop_scale_max && p.crop_scale_max <= 1,
            "augment: smallest share of the area", p.crop_scale_min, "give 0 < min <= max <= 1");
  PAL_CHECK(p.crop_ratio_min > 0 && p.crop_ratio_min <= p.crop_ratio_max && std::isfinite(p.crop_ratio_max),
            "augment: smallest aspect ratio", p.crop_ratio_min, "give 0 < min <= max");
  for (const float strength : {p.brightness, p.contrast, p.saturation}) {
    PAL_CHECK(strength >= 0 && std::isfinite(strength), "augment: strength of the jitter", strength,
              "give a number >= 0");
  }
  PAL_CHECK(p.hue >= 0 && p.hue <= 0.5f, "augment: strength of the hue jitter", p.hue, "give a number from 0 to 0.5");
  PAL_CHECK(p.blur_sigma_min > 0 && p.blur_sigma_min <= p.blur_sigma_max && std::isfinite(p.blur_sigma_max),
            "augment: smallest sigma of the blur", p.blur_sigma_min, "give 0 < min <= max");
  PAL_CHECK(std::isfinite(p.solarize_threshold), "augment: solarize threshold", p.solarize_threshold, "give a number");
}

inline void check_options(const AugmentOptions& o) {
  PAL_CHECK(o.size >= 1 && o.size <= kMaxSize, "augment: size of the views", o.size, "give 1 to 4096 pixels");
  PAL_CHECK(o.channels == 1 || o.channels == 3, "augment: channels of the views", o.channels, "give 1 or 3");
  for (int c = 0; c < o.channels; ++c) {
    PAL_CHECK(std::isfinite(o.mean[c]), "augment: mean of a channel", o.mean[c], "give a finite number");
    PAL_CHECK(std::isfinite(o.std[c]) && o.std[c] > 0, "augment: std of a channel", o.std[c], "give a number above 0");
  }
}

inline void check_images(Span<const ImageView> images) {
  for (int64_t i = 0; i < images.size; ++i) {
    const ImageView& image = images[i];
    PAL_CHECK(image.data && image.height > 0 && image.width > 0, "augment: empty image at position", i,
              "give images of at least 1x1 pixel");
    PAL_CHECK(image.channels == 1 || image.channels == 3, "augment: channels of an image", image.channels,
              "give 1 or 3");
  }
}

template <class T>
void check_augment(const T* out, Span<const ImageView> images, Span<const int64_t> sample, Span<const ViewPolicy> views,
                   const AugmentOptions& options) {
  check_options(options);
  check_images(images);
  PAL_CHECK(sample.size == images.size, "augment: number of sample ids", sample.size, "give one per image");
  for (int64_t v = 0; v < views.size; ++v) check_policy(views[v]);
  PAL_CHECK(options.view_stride == 0 || options.view_stride >= images.size * view_elements(options),
            "augment: view stride", options.view_stride, "give 0 or at least the elements of one view of the batch");
  PAL_CHECK(out || images.size == 0 || views.size == 0, "augment: out", "null", "give room for all views");
}

template <class T>
void check_part(const T* out, const ImagePart& part, const ViewParams& params, const AugmentOptions& options) {
  check_options(options);
  check_images({&part.pixels, 1});
  const CropBox& crop = params.crop;
  const auto holds = [&](int32_t begin, int32_t crop_length, int32_t part_begin, int32_t length) {
    const int64_t first = int64_t{part_begin} * part.unit, end = (int64_t{part_begin} + length) * part.unit;
    return crop_length > 0 && begin >= first && int64_t{begin} + crop_length <= end;
  };
  PAL_CHECK(part.unit >= 1 && holds(crop.top, crop.height, part.top, part.pixels.height) &&
                holds(crop.left, crop.width, part.left, part.pixels.width),
            "augment: crop that the part does not hold, of rows", crop.height, "decode all of the crop");
  PAL_CHECK(out, "augment: out", "null", "give room for the view");
}

template <class T>
void check_parts(const T* out, Span<const ImagePart> parts, Span<const ViewParams> params,
                 const AugmentOptions& options) {
  PAL_CHECK(params.size == parts.size, "augment_parts: number of parameters", params.size,
            "give one set for each part");
  for (int64_t i = 0; i < parts.size; ++i) check_part(out, parts[i], params[i], options);
}

template <class T>
void check_center_view(const T* out, Span<const ImageView> images, const AugmentOptions& options) {
  check_options(options);
  check_images(images);
  PAL_CHECK(out || images.size == 0, "center_view: out", "null", "give room for all views");
}

}  // namespace pal::kernels::detail
