// augment_impl: what augment.cpp and its vector loops (augment_impl.cpp, one per ISA) share, and the weights of
// crop-resize along one axis, which CPU and CUDA share.
//
// Math:   output x takes the inputs [begin, end) with weights proportional to weight(p, x), which sum to 1: the filter
//         is widened by the scale when the crop shrinks (antialiasing) and cut at the crop's border. A crop of an image
//         that was decoded at a reduced size begins and ends between its pixels: [origin, origin + extent). Bilinear is
//         the triangle, bicubic the convolution of Keys with a = −1/2: torch's interpolate(antialias=True) and
//         Pillow's. (Without antialiasing torch takes a = −3/4.)
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/augment_params.h"

namespace pal::kernels {

// Half the width of a filter before it is widened.
PAL_HOST_DEVICE inline int32_t filter_radius(Interpolation interpolation) {
  return interpolation == Interpolation::bicubic ? 2 : 1;
}

// Where a crop of the whole image lies along one axis of a part: the pixels it touches, and its own ends between them.
struct Reach {
  int32_t first, length;
  double origin, extent;

  PAL_HOST_DEVICE Reach(int32_t begin, int32_t crop, int32_t part_begin, int32_t part_length, int32_t unit) {
    const double from = double(begin) / unit - part_begin;
    extent = double(crop) / unit;
    first = int32_t(from);
    const int32_t end = int32_t(std::ceil(from + extent));
    length = (end < part_length ? end : part_length) - first;
    origin = from - first;
  }
};

struct AxisFilter {
  Interpolation interpolation;
  int32_t length;  // inputs
  double origin, scale, support, inverse;

  PAL_HOST_DEVICE AxisFilter(Interpolation interpolation, int32_t length, int32_t size)
      : AxisFilter(interpolation, length, size, 0, length) {}
  PAL_HOST_DEVICE AxisFilter(Interpolation interpolation, int32_t length, int32_t size, double origin, double extent)
      : interpolation(interpolation), length(length), origin(origin), scale(extent / size) {
    const double widening = scale > 1 ? scale : 1;
    support = filter_radius(interpolation) * widening;
    inverse = 1 / widening;
  }
  PAL_HOST_DEVICE double center(int32_t x) const { return origin + scale * (x + 0.5); }
  PAL_HOST_DEVICE int32_t begin(int32_t x) const {
    const double first = center(x) - support + 0.5;
    return first > 0 ? int32_t(first) : 0;
  }
  PAL_HOST_DEVICE int32_t end(int32_t x) const {
    const int32_t last = int32_t(center(x) + support + 0.5);
    return last < length ? last : length;
  }
  PAL_HOST_DEVICE double weight(int32_t p, int32_t x) const {
    const double d = std::fabs(p + 0.5 - center(x)) * inverse;
    if (interpolation == Interpolation::bilinear) return d < 1 ? 1 - d : 0;
    if (d < 1) return (1.5 * d - 2.5) * d * d + 1;
    return d < 2 ? ((-0.5 * d + 2.5) * d - 4) * d + 2 : 0;
  }
};

namespace detail {

constexpr int32_t kMaxSize = 4096;  // of the output

// Filter weights of one axis: output x is Σ_j weights[j · size + x] · input[first[x] + j], j < count.
template <class T>
struct Taps {
  T* weights = nullptr;      // (count, size)
  int32_t* first = nullptr;  // (size)
  int32_t count = 0;
};

// Memory of one thread.
template <class T>
struct ViewBuffers {
  T* planes = nullptr;   // (3, size, size)
  T* blurred = nullptr;  // (size, size) a plane blurred along x only
  T* row = nullptr;      // (largest row a step needs, and 4 more)
  Taps<T> x, y;
};

template <class T>
struct ViewJob {
  T* out = nullptr;  // (C, size, size) in options.layout
  ImagePart image;
  ViewParams params;
  ViewBuffers<T> buffers;
};

// Weights that an axis of `length` pixels needs at most.
inline int64_t taps_capacity(int64_t length, int64_t size, Interpolation interpolation) {
  return size * (2 * filter_radius(interpolation) * ((length + size - 1) / size) + 3);
}

// One view from the image to its place in out. params.crop lies inside the part.
#define PAL_AUGMENT_ISA(isa)                                                   \
  namespace isa {                                                              \
  void render_view(const ViewJob<float>& job, const AugmentOptions& options);  \
  void render_view(const ViewJob<double>& job, const AugmentOptions& options); \
  }
PAL_AUGMENT_ISA(scalar)
PAL_AUGMENT_ISA(avx2)
PAL_AUGMENT_ISA(avx512)
#undef PAL_AUGMENT_ISA

}  // namespace detail
}  // namespace pal::kernels
