// augment_impl: one view from the image to the output; compiled once per instruction set (PAL_ISA).
//
// Math:   crop, flip and resize by the separable filters of augment_impl.h. A row of the output is first blended from
//         rows of bytes, which are contiguous, then resampled along x. augment_color.h has jitter, gray and blur.
#include "kernels/augment_impl.h"

#include <cmath>
#include <cstring>

#include "kernels/augment_color.h"

namespace pal::kernels::detail::PAL_ISA {
namespace {

enum class Direction { forward, reversed };

// Weights for `size` outputs of an axis, times `gain`; reversed: output x is that of size − 1 − x.
template <class T>
void fill_taps(Taps<T>& taps, const AxisFilter& filter, int32_t size, double gain, Direction direction) {
  taps.count = 1;
  for (int32_t x = 0; x < size; ++x) {
    const int32_t n = filter.end(x) - filter.begin(x);
    taps.count = n > taps.count ? n : taps.count;
  }
  for (int32_t i = 0; i < size; ++i) {
    const int32_t x = direction == Direction::forward ? i : size - 1 - i;
    const int32_t begin = filter.begin(x);
    // All outputs use `count` inputs; where fewer count, the others have weight 0 but must still exist.
    const int32_t first = begin + taps.count <= filter.length ? begin : filter.length - taps.count;
    double sum = 0;
    for (int32_t j = 0; j < taps.count; ++j) sum += filter.weight(first + j, x);
    const double factor = gain / sum;
    for (int32_t j = 0; j < taps.count; ++j)
      taps.weights[int64_t(j) * size + i] = T(filter.weight(first + j, x) * factor);
    taps.first[i] = first;
  }
}

enum class Blend { set, add };

// row[i] (+)= Σ_j weights[j] · source[j · stride + i], j < N.
template <int N, Blend kBlend, class T>
inline void blend_fixed(T* __restrict row, const uint8_t* __restrict source, int64_t stride, const T* weights,
                        int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T sum = kBlend == Blend::add ? row[i] : T(0);
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) sum += weights[j] * T(int(source[j * stride + i]));
    row[i] = sum;
  }
}

// The output row y before it is resampled along x: (crop width · channels).
template <class T>
void blend_rows(T* row, const uint8_t* source, int64_t stride, const Taps<T>& taps, int32_t size, int32_t y,
                int64_t n) {
  for (int32_t j = 0; j < taps.count; j += 4) {
    const int32_t left = taps.count - j < 4 ? taps.count - j : 4;
    T w[4] = {};
    for (int32_t k = 0; k < left; ++k) w[k] = taps.weights[int64_t(j + k) * size + y];
    const uint8_t* s = source + j * stride;
    if (j > 0) {
      if (left == 4) blend_fixed<4, Blend::add>(row, s, stride, w, n);
      if (left == 3) blend_fixed<3, Blend::add>(row, s, stride, w, n);
      if (left == 2) blend_fixed<2, Blend::add>(row, s, stride, w, n);
      if (left == 1) blend_fixed<1, Blend::add>(row, s, stride, w, n);
    } else {
      if (left == 4) blend_fixed<4, Blend::set>(row, s, stride, w, n);
      if (left == 3) blend_fixed<3, Blend::set>(row, s, stride, w, n);
      if (left == 2) blend_fixed<2, Blend::set>(row, s, stride, w, n);
      if (left == 1) blend_fixed<1, Blend::set>(row, s, stride, w, n);
    }
  }
}

template <class T>
void resample_gray(T* __restrict out, const T* __restrict row, const Taps<T>& taps, int32_t size) {
  const int32_t* __restrict first = taps.first;
  for (int32_t x = 0; x < size; ++x) out[x] = taps.weights[x] * row[first[x]];
  for (int32_t j = 1; j < taps.count; ++j) {
    const T* __restrict w = taps.weights + int64_t(j) * size;
    for (int32_t x = 0; x < size; ++x) out[x] += w[x] * row[first[x] + j];
  }
}

// A pixel's three channels, and one value too many, are a vector: one multiply-add per tap.
template <int N, class T>
inline void resample_color_fixed(T* out, int64_t plane, const T* row, const Taps<T>& taps, int32_t size) {
  typedef T Pixel __attribute__((vector_size(4 * sizeof(T))));
  const int32_t count = N > 0 ? N : taps.count;
  for (int32_t x = 0; x < size; ++x) {
    const T* source = row + 3 * int64_t(taps.first[x]);
    const T* w = taps.weights + x;
    Pixel sum = {};
    for (int32_t j = 0; j < count; ++j) {
      Pixel p;
      std::memcpy(&p, source + 3 * j, sizeof(p));
      sum += w[int64_t(j) * size] * p;
    }
    out[x] = sum[0];
    out[plane + x] = sum[1];
    out[2 * plane + x] = sum[2];
  }
}

template <class T>
void resample_color(T* out, int64_t plane, const T* row, const Taps<T>& taps, int32_t size) {
  if (taps.count == 2) return resample_color_fixed<2>(out, plane, row, taps, size);
  if (taps.count == 3) return resample_color_fixed<3>(out, plane, row, taps, size);
  if (taps.count == 4) return resample_color_fixed<4>(out, plane, row, taps, size);
  resample_color_fixed<0>(out, plane, row, taps, size);
}

// Fills planes (channels, size, size) with values in [0, 1]. channels 1 from a color image: luma.
template <class T>
void crop_resize(const ViewJob<T>& job, Interpolation interpolation, int32_t size, int32_t channels) {
  const CropBox& crop = job.params.crop;
  const ImageView& image = job.image.pixels;
  const Reach across(crop.left, crop.width, job.image.left, image.width, job.image.unit);
  const Reach down(crop.top, crop.height, job.image.top, image.height, job.image.unit);
  Taps<T> x = job.buffers.x, y = job.buffers.y;
  fill_taps(x, {interpolation, across.length, size, across.origin, across.extent}, size, 1.0,
            job.params.flip ? Direction::reversed : Direction::forward);
  fill_taps(y, {interpolation, down.length, size, down.origin, down.extent}, size, 1.0 / 255, Direction::forward);
  const int64_t stride = int64_t(image.width) * image.channels, plane = int64_t(size) * size;
  const uint8_t* corner = image.data + down.first * stride + int64_t(across.first) * image.channels;
  T* row = job.buffers.row;
  for (int32_t i = 0; i < size; ++i) {
    T* out = job.buffers.planes + int64_t(i) * size;
    blend_rows(row, corner + y.first[i] * stride, stride, y, size, i, int64_t(across.length) * image.channels);
    if (channels == 3) {
      resample_color(out, plane, row, x, size);
      continue;
    }
    if (image.channels == 3) {
      for (int32_t p = 0; p < across.length; ++p) row[p] = luma(row[3 * p], row[3 * p + 1], row[3 * p + 2]);
    }
    resample_gray(out, row, x, size);
  }
  if (interpolation != Interpolation::bicubic) return;
  for (int64_t i = 0; i < channels * plane; ++i) job.buffers.planes[i] = clamp01(job.buffers.planes[i]);
}

// Solarizes if asked, normalizes and stores; a single plane is repeated to all channels of out.
template <class T>
void finish(const ViewJob<T>& job, const AugmentOptions& options, int32_t planes) {
  const int64_t plane = int64_t(options.size) * options.size;
  const T threshold = job.params.solarize ? T(job.params.solarize_threshold) : std::numeric_limits<T>::max();
  const int64_t step = options.layout == Layout::channels_last ? options.channels : 1;
  for (int32_t c = 0; c < options.channels; ++c) {
    const T* __restrict in = job.buffers.planes + (planes == 1 ? 0 : c * plane);
    T* __restrict out = job.out + (options.layout == Layout::channels_last ? c : c * plane);
    const T scale = T(1) / T(options.std[c]), shift = -T(options.mean[c]) * scale;
    if (step == 1) {
      for (int64_t i = 0; i < plane; ++i) out[i] = (in[i] >= threshold ? 1 - in[i] : in[i]) * scale + shift;
    } else {
      for (int64_t i = 0; i < plane; ++i) out[3 * i] = (in[i] >= threshold ? 1 - in[i] : in[i]) * scale + shift;
    }
  }
}

template <class T>
void render(const ViewJob<T>& job, const AugmentOptions& options) {
  const int32_t planes = options.channels == 1 ? 1 : job.image.pixels.channels;
  const int64_t plane = int64_t(options.size) * options.size;
  T* p = job.buffers.planes;
  crop_resize(job, options.interpolation, options.size, planes);
  if (job.params.jitter) jitter(p, options.size, planes, job.params);
  if (job.params.gray && planes == 3) saturate(p, p + plane, p + 2 * plane, plane, T(0));
  if (job.params.blur) blur(job.buffers, options.size, planes, job.params.blur_sigma);
  finish(job, options, planes);
}

}  // namespace

void render_view(const ViewJob<float>& job, const AugmentOptions& options) { render(job, options); }
void render_view(const ViewJob<double>& job, const AugmentOptions& options) { render(job, options); }

}  // namespace pal::kernels::detail::PAL_ISA
