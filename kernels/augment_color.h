// augment_color: jitter, gray and blur of one view's planes, in place; included by augment_impl.cpp only.
#pragma once

#include <cstring>
#include <limits>

#include "kernels/augment_impl.h"
#include "kernels/augment_pixel.h"

namespace pal::kernels::detail::PAL_ISA {
namespace {

// x ← clamp(scale x + shift): brightness, and contrast with the mean in the shift.
template <class T>
void scale_shift(T* values, int64_t n, T scale, T shift) {
  for (int64_t i = 0; i < n; ++i) values[i] = clamp01(scale * values[i] + shift);
}

// Mean of the luma. Sixteen partial sums, whatever the ISA, and fp64 between rows.
template <class T>
double luma_mean(const T* planes, int32_t size, int32_t channels) {
  constexpr int kLanes = 16;
  const int64_t plane = int64_t(size) * size;
  double total = 0;
  for (int32_t y = 0; y < size; ++y) {
    const T* r = planes + int64_t(y) * size;
    T lanes[kLanes] = {};
    int32_t x = 0;
    for (; x + kLanes <= size; x += kLanes) {
      for (int l = 0; l < kLanes; ++l) {
        const int32_t p = x + l;
        lanes[l] += channels == 1 ? r[p] : luma(r[p], r[plane + p], r[2 * plane + p]);
      }
    }
    double sum = 0;
    for (; x < size; ++x) sum += channels == 1 ? r[x] : luma(r[x], r[plane + x], r[2 * plane + x]);
    for (int l = 0; l < kLanes; ++l) sum += lanes[l];
    total += sum;
  }
  return total / double(plane);
}

// The pixel goes through locals: references into the planes would lose __restrict, and with it the vector loop.
template <class T, class F>
inline void for_pixels(T* __restrict r, T* __restrict g, T* __restrict b, int64_t n, const F& f) {
  for (int64_t i = 0; i < n; ++i) {
    T red = r[i], green = g[i], blue = b[i];
    f(red, green, blue);
    r[i] = red;
    g[i] = green;
    b[i] = blue;
  }
}

template <class T>
void saturate(T* r, T* g, T* b, int64_t n, T factor) {
  for_pixels(r, g, b, n, [factor](T& red, T& green, T& blue) { saturate_pixel(red, green, blue, factor); });
}

template <class T>
void turn_hue(T* r, T* g, T* b, int64_t n, T turn) {
  for_pixels(r, g, b, n, [shift = 6 * turn](T& red, T& green, T& blue) { turn_hue_pixel(red, green, blue, shift); });
}

template <class T>
void jitter(T* planes, int32_t size, int32_t channels, const ViewParams& params) {
  const int64_t plane = int64_t(size) * size;
  for (const int8_t step : params.jitter_order) {
    const T factor = T(params.jitter_factor[step]);
    if (factor == (step == kHue ? T(0) : T(1))) continue;
    if (step == kBrightness) scale_shift(planes, channels * plane, factor, T(0));
    if (step == kContrast)
      scale_shift(planes, channels * plane, factor, T((1 - factor) * luma_mean(planes, size, channels)));
    if (channels == 1) continue;
    if (step == kSaturation) saturate(planes, planes + plane, planes + 2 * plane, plane, factor);
    if (step == kHue) turn_hue(planes, planes + plane, planes + 2 * plane, plane, factor);
  }
}

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

// kCount registers' worth of out[x] = Σ_k kernel[k] · (before[k][x] + after[k][x]), the middle one once. A vector wider
// than a register would be kept in memory.
template <int kCount, class T>
inline void convolve_block(T* out, int32_t x, const T* kernel, int32_t radius, const T* const* before,
                           const T* const* after) {
  typedef T Vector __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  constexpr int kLanes = kVectorBytes / sizeof(T);
  const auto at = [x](const T* p, int i) { return *reinterpret_cast<const Vector*>(p + x + i * kLanes); };
  Vector sum[kCount];
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) sum[i] = kernel[0] * at(before[0], i);
  for (int32_t k = 1; k <= radius; ++k) {
    const T weight = kernel[k];
#pragma GCC unroll 4
    for (int i = 0; i < kCount; ++i) sum[i] += weight * (at(before[k], i) + at(after[k], i));
  }
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) *reinterpret_cast<Vector*>(out + x + i * kLanes) = sum[i];
}

template <class T>
void convolve(T* out, int32_t n, const T* kernel, int32_t radius, const T* const* before, const T* const* after) {
  constexpr int32_t kLanes = kVectorBytes / sizeof(T), kWide = 4 * kLanes;
  int32_t x = 0;
  for (; x + kWide <= n; x += kWide) convolve_block<4>(out, x, kernel, radius, before, after);
  for (; x + kLanes <= n; x += kLanes) convolve_block<1>(out, x, kernel, radius, before, after);
  for (; x < n; ++x) {
    T sum = kernel[0] * before[0][x];
    for (int32_t k = 1; k <= radius; ++k) sum += kernel[k] * (before[k][x] + after[k][x]);
    out[x] = sum;
  }
}

template <class T>
void blur(const ViewBuffers<T>& buffers, int32_t size, int32_t channels, double sigma) {
  T kernel[kMaxSize / 20 + 2];
  const T *before[kMaxSize / 20 + 2], *after[kMaxSize / 20 + 2];
  const BlurFilter filter(sigma, blur_kernel_size(size) / 2, std::numeric_limits<T>::epsilon());
  const int32_t radius = filter.radius;
  for (int32_t k = 0; k <= radius; ++k) kernel[k] = T(filter.weight(k));

  for (int32_t c = 0; c < channels; ++c) {
    T* plane = buffers.planes + int64_t(c) * size * size;
    for (int32_t y = 0; y < size; ++y) {
      T* padded = buffers.row + radius;
      std::memcpy(padded, plane + int64_t(y) * size, sizeof(T) * size);
      for (int32_t k = 1; k <= radius; ++k) {
        padded[-k] = padded[reflect(-k, size)];
        padded[size - 1 + k] = padded[reflect(size - 1 + k, size)];
      }
      for (int32_t k = 0; k <= radius; ++k) {
        before[k] = padded - k;
        after[k] = padded + k;
      }
      convolve(buffers.blurred + int64_t(y) * size, size, kernel, radius, before, after);
    }
    for (int32_t y = 0; y < size; ++y) {
      for (int32_t k = 0; k <= radius; ++k) {
        before[k] = buffers.blurred + int64_t(reflect(y - k, size)) * size;
        after[k] = buffers.blurred + int64_t(reflect(y + k, size)) * size;
      }
      convolve(plane + int64_t(y) * size, size, kernel, radius, before, after);
    }
  }
}

}  // namespace
}  // namespace pal::kernels::detail::PAL_ISA
