// augment.cuh: what the kernels of augment share: the plan of a view, and the pixels that a thread owns.
#pragma once

#include "kernels/augment_check.h"
#include "kernels/augment_pixel.h"
#include "kernels/base/device.cuh"
#include "kernels/base/scratch.h"

namespace pal::kernels::cuda {
namespace {

using detail::clamp01;
using detail::luma;

constexpr int kBand = 8, kWarps = 4, kThreads = kWarps * kWarp;
constexpr int kTileSide = kBand * kWarps;  // a block's tile is square

struct Plan {
  ImagePart part;
  ViewParams params;
  int32_t top, left;  // the first pixel of the part that the crop touches
  int32_t blur_radius;
};

// Output i takes inputs [first[i], end[i]) with weights[(p − first[i]) · size + i].
struct Axis {
  int32_t *first, *end;  // (images, size)
  float* weights;        // (images, capacity)
  int64_t capacity;
};

// Everything the kernels share for one view of up to kImages images.
struct Work {
  AugmentOptions options;
  int32_t size, tiles_across, tiles, full_radius;
  Plan* plan;  // (images)
  Axis x, y;
  float* blur_weights;      // (images, full_radius + 1)
  double* luma_sums;        // (images, tiles)
  float* planes;            // (images, 3, size, size) of the views that are blurred
  float gain[3], shift[3];  // of a channel: (v − mean) / std
  int64_t bytes;

  Work(void* base, int64_t images, detail::Extent extent, const AugmentOptions& o)
      : options(o),
        size(o.size),
        tiles_across(static_cast<int32_t>(ceil_div(size, kTileSide))),
        tiles(tiles_across * tiles_across),
        full_radius(blur_kernel_size(size) / 2) {
    ScratchPieces pieces(base);
    plan = pieces.take<Plan>(images);
    const auto axis = [&](int64_t length) {
      const int64_t capacity = detail::taps_capacity(length, size, o.interpolation);
      int32_t* first = pieces.take<int32_t>(images * size);
      int32_t* end = pieces.take<int32_t>(images * size);
      return Axis{first, end, pieces.take<float>(images * capacity), capacity};
    };
    x = axis(extent.width);
    y = axis(extent.height);
    blur_weights = pieces.take<float>(images * (full_radius + 1));
    luma_sums = pieces.take<double>(images * tiles);
    planes = pieces.take<float>(images * 3 * size * size);
    bytes = pieces.bytes();
    for (int c = 0; c < 3; ++c) {
      gain[c] = 1 / o.std[c];
      shift[c] = -o.mean[c] * gain[c];
    }
  }
};

// ---- pixels ----
struct Pixels {  // of one lane: a column, kBand rows
  float v[kBand][3];
  int32_t x, y;  // of the first row
};

template <int channels>
__device__ void resize(Pixels& out, const Work& w, const Plan& plan, int64_t image) {
  const int32_t size = w.size, last = min(out.y + kBand, size) - 1;
  const bool inside = out.x < size;
  int32_t first[kBand], end[kBand];
#pragma unroll
  for (int r = 0; r < kBand; ++r) {
    first[r] = out.y + r <= last ? w.y.first[image * size + out.y + r] : 0;
    end[r] = out.y + r <= last ? w.y.end[image * size + out.y + r] : 0;
    for (int c = 0; c < 3; ++c) out.v[r][c] = 0;
  }
  if (out.y > last) return;
  const int32_t x_first = inside ? w.x.first[image * size + out.x] : 0,
                x_count = inside ? w.x.end[image * size + out.x] - x_first : 0;
  const float* x_weights = w.x.weights + image * w.x.capacity + out.x;
  const float* y_weights = w.y.weights + image * w.y.capacity + out.y;
  const int64_t stride = static_cast<int64_t>(plan.part.pixels.width) * channels;
  const uint8_t* corner =
      plan.part.pixels.data + plan.top * stride + static_cast<int64_t>(plan.left + x_first) * channels;
  const int32_t stop = w.y.end[image * size + last];
  for (int32_t row = first[0]; row < stop; ++row) {  // the rows of bytes that any of this band takes
    const uint8_t* from = corner + row * stride;
    float sum[channels] = {};
    for (int32_t j = 0; j < x_count; ++j) {
      const float weight = x_weights[static_cast<int64_t>(j) * size];
#pragma unroll
      for (int c = 0; c < channels; ++c) sum[c] += weight * static_cast<float>(from[j * channels + c]);
    }
#pragma unroll
    for (int r = 0; r < kBand; ++r) {
      if (row < first[r] || row >= end[r]) continue;
      const float weight = y_weights[static_cast<int64_t>(row - first[r]) * size + r];
#pragma unroll
      for (int c = 0; c < channels; ++c) out.v[r][c] += weight * sum[c];
    }
  }
}

// This thread's pixels of its block's tile, resized; returns how many planes they have. channels 1 from color: luma.
__device__ int load_pixels(Pixels& p, const Work& w, const Plan& plan, int64_t image) {
  p.x = static_cast<int32_t>(blockIdx.x) % w.tiles_across * kTileSide + threadIdx.x % kWarp;
  p.y = static_cast<int32_t>(blockIdx.x) / w.tiles_across * kTileSide + threadIdx.x / kWarp * kBand;
  const int channels = plan.part.pixels.channels, planes = w.options.channels == 1 ? 1 : channels;
  if (channels == 1)
    resize<1>(p, w, plan, image);
  else
    resize<3>(p, w, plan, image);
#pragma unroll
  for (int r = 0; r < kBand; ++r) {
    if (planes < channels) p.v[r][0] = luma(p.v[r][0], p.v[r][1], p.v[r][2]);
    if (w.options.interpolation != Interpolation::bicubic) continue;
#pragma unroll
    for (int c = 0; c < 3; ++c) p.v[r][c] = clamp01(p.v[r][c]);
  }
  return planes;
}

__device__ bool changes(const ViewParams& params, int step) {
  return params.jitter && params.jitter_factor[step] != (step == kHue ? 0.0f : 1.0f);
}

__device__ void scale_shift(Pixels& p, float scale, float shift) {
#pragma unroll
  for (int r = 0; r < kBand; ++r) {
#pragma unroll
    for (int c = 0; c < 3; ++c) p.v[r][c] = clamp01(scale * p.v[r][c] + shift);
  }
}
__device__ void saturate(Pixels& p, float factor) {
#pragma unroll
  for (int r = 0; r < kBand; ++r) detail::saturate_pixel(p.v[r][0], p.v[r][1], p.v[r][2], factor);
}

enum class Until { contrast, end };

// The steps of the jitter in their order, up to contrast or all of them.
__device__ void jitter(Pixels& p, const ViewParams& params, int planes, float mean, Until until) {
#pragma unroll 1
  for (int s = 0; s < 4; ++s) {
    const int step = params.jitter_order[s];
    if (!changes(params, step)) continue;
    const float factor = params.jitter_factor[step];
    if (step == kContrast && until == Until::contrast) return;
    if (step == kBrightness || step == kContrast)
      scale_shift(p, factor, step == kContrast ? (1 - factor) * mean : 0.0f);
    if (planes == 1) continue;
    if (step == kSaturation) saturate(p, factor);
    if (step != kHue) continue;
#pragma unroll
    for (int r = 0; r < kBand; ++r) detail::turn_hue_pixel(p.v[r][0], p.v[r][1], p.v[r][2], 6 * factor);
  }
}

}  // namespace
}  // namespace pal::kernels::cuda
