// augment_colour: jitter, gray and blur of one view's planes, in place; included by augment_impl.cpp only.
//
// Math:   brightness  clamp(f x)            contrast    clamp(f x + (1 − f) mean of the luma)
//         saturation  clamp(f x + (1 − f) luma)         hue  h → h + f in HSV, h in turns
#pragma once

#include <cstring>
#include <limits>

#include "kernels/augment_impl.h"

namespace pal::kernels::detail::PAL_ISA {
namespace {

template <class T>
inline T clamp01(T x) {
  x = x > 0 ? x : T(0);
  return x < 1 ? x : T(1);
}

// ITU-R 601-2 as torchvision has it.
template <class T>
inline T luma(T r, T g, T b) {
  return T(0.2989) * r + T(0.587) * g + T(0.114) * b;
}

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

// r, g, b ← clamp(factor · channel + (1 − factor) · luma); factor 0 is gray.
template <class T>
void saturate(T* __restrict r, T* __restrict g, T* __restrict b, int64_t n, T factor) {
  for (int64_t i = 0; i < n; ++i) {
    const T rest = (1 - factor) * luma(r[i], g[i], b[i]);
    r[i] = clamp01(factor * r[i] + rest);
    g[i] = clamp01(factor * g[i] + rest);
    b[i] = clamp01(factor * b[i] + rest);
  }
}

// Turns the hue without branches. With v the largest channel, c its distance to the smallest and h6 the hue in sixths,
// a channel is v − c · clamp(2 − |d|), d the distance around the circle from h6 to the sixth opposite the channel's own.
template <class T>
void turn_hue(T* __restrict r, T* __restrict g, T* __restrict b, int64_t n, T turn) {
  const auto channel = [](T v, T c, T d) {
    d = d > 3 ? d - 6 : d;
    d = d < -3 ? d + 6 : d;
    return clamp01(v - c * clamp01(2 - (d < 0 ? -d : d)));
  };
  const T shift = 6 * turn;
  for (int64_t i = 0; i < n; ++i) {
    const T red = r[i], green = g[i], blue = b[i];
    const T larger = red > green ? red : green, smaller = red > green ? green : red;
    const T v = larger > blue ? larger : blue, low = smaller < blue ? smaller : blue;
    const T c = v - low;
    // Which channel is the largest: the hue starts at 0 (red), 2 (green) or 4 (blue) sixths.
    const T up = v == red ? green : v == green ? blue : red;
    const T down = v == red ? blue : v == green ? red : green;
    const T start = v == red ? T(0) : v == green ? T(2) : T(4);
    const T divisor = c > 0 ? c : T(1);
    const T h6 = start + (up - down) / divisor + shift;  // in [−4, 8]
    r[i] = channel(v, c, h6 - 3);
    g[i] = channel(v, c, h6 + 1);
    b[i] = channel(v, c, h6 - 1);
  }
}

template <class T>
void jitter(T* planes, int32_t size, int32_t channels, const ViewParams& params) {
  const int64_t plane = int64_t(size) * size;
  for (const int8_t step : params.jitter_order) {
    const T factor = T(params.jitter_factor[step]);
    if (factor == (step == kHue ? T(0) : T(1))) continue;
    if (step == kBrightness) scale_shift(planes, channels * plane, factor, T(0));
    if (step == kContrast) scale_shift(planes, channels * plane, factor, T((1 - factor) * luma_mean(planes, size, channels)));
    if (channels == 1) continue;
    if (step == kSaturation) saturate(planes, planes + plane, planes + 2 * plane, plane, factor);
    if (step == kHue) turn_hue(planes, planes + plane, planes + 2 * plane, plane, factor);
  }
}

// out[x] = Σ_k kernel[|k − radius|] · source[k][x]; a block of columns keeps its sum in registers.
template <class T, class Source>
inline void convolve(T* out, int32_t n, const T* kernel, int32_t radius, const Source& source) {
  constexpr int kLanes = 16;
  typedef T Lanes __attribute__((vector_size(kLanes * sizeof(T)), aligned(sizeof(T)), may_alias));
  const auto lanes = [](auto* p) { return reinterpret_cast<const Lanes*>(p); };
  int32_t x = 0;
  while (x < n) {
    if (n < kLanes) {
      T sum = kernel[0] * source(0)[x];
      for (int32_t k = 1; k <= radius; ++k) sum += kernel[k] * (source(-k)[x] + source(k)[x]);
      out[x++] = sum;
      continue;
    }
    if (x + kLanes > n) x = n - kLanes;  // the last block overlaps the one before it
    Lanes sum = kernel[0] * *lanes(source(0) + x);
    for (int32_t k = 1; k <= radius; ++k) sum += kernel[k] * (*lanes(source(-k) + x) + *lanes(source(k) + x));
    *reinterpret_cast<Lanes*>(out + x) = sum;
    x += kLanes;
  }
}

// Mirror without repeating the border: −1 → 1, n → n − 2.
inline int32_t reflect(int32_t i, int32_t n) {
  if (n == 1) return 0;
  while (i < 0 || i >= n) i = i < 0 ? -i : 2 * (n - 1) - i;
  return i;
}

template <class T>
void blur(const ViewBuffers<T>& buffers, int32_t size, int32_t channels, double sigma) {
  T kernel[kMaxSize / 20 + 2];
  int32_t radius = blur_kernel_size(size) / 2;
  double sum = 0;
  const auto weight = [&](int32_t k) { return std::exp(-0.5 * k * k / (sigma * sigma)); };
  for (int32_t k = -radius; k <= radius; ++k) sum += weight(k);
  while (radius > 0 && weight(radius) < 0.1 * std::numeric_limits<T>::epsilon()) --radius;  // these would add nothing
  for (int32_t k = 0; k <= radius; ++k) kernel[k] = T(weight(k) / sum);

  for (int32_t c = 0; c < channels; ++c) {
    T* plane = buffers.planes + int64_t(c) * size * size;
    for (int32_t y = 0; y < size; ++y) {
      T* padded = buffers.row + radius;
      std::memcpy(padded, plane + int64_t(y) * size, sizeof(T) * size);
      for (int32_t k = 1; k <= radius; ++k) {
        padded[-k] = padded[reflect(-k, size)];
        padded[size - 1 + k] = padded[reflect(size - 1 + k, size)];
      }
      convolve(buffers.blurred + int64_t(y) * size, size, kernel, radius, [&](int32_t k) { return padded + k; });
    }
    for (int32_t y = 0; y < size; ++y) {
      convolve(plane + int64_t(y) * size, size, kernel, radius,
               [&](int32_t k) { return buffers.blurred + int64_t(reflect(y + k, size)) * size; });
    }
  }
}

}  // namespace
}  // namespace pal::kernels::detail::PAL_ISA
