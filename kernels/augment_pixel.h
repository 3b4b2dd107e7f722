// augment_pixel: what the color steps do to one pixel, and how a blur mirrors the border; the same on host and device.
//
// Math:   brightness  clamp(f x)            contrast    clamp(f x + (1 − f) mean of the luma)
//         saturation  clamp(f x + (1 − f) luma)         hue  h → h + f in HSV, h in turns
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/base/philox.h"

// In an unnamed namespace: these are compiled once per instruction set, and the linker must not merge the copies.
namespace pal::kernels::detail {
namespace {

template <class T>
PAL_HOST_DEVICE inline T clamp01(T x) {
  x = x > 0 ? x : T(0);
  return x < 1 ? x : T(1);
}

// ITU-R 601-2 as torchvision has it.
template <class T>
PAL_HOST_DEVICE inline T luma(T r, T g, T b) {
  return T(0.2989) * r + T(0.587) * g + T(0.114) * b;
}

// Each ← clamp(factor · channel + (1 − factor) · luma); factor 0 is gray.
template <class T>
PAL_HOST_DEVICE inline void saturate_pixel(T& r, T& g, T& b, T factor) {
  const T rest = (1 - factor) * luma(r, g, b);
  r = clamp01(factor * r + rest);
  g = clamp01(factor * g + rest);
  b = clamp01(factor * b + rest);
}

// Turns the hue without branches; shift in sixths of a turn. With v the largest channel, c its distance to the smallest
// and h6 the hue in sixths, a channel is v − c · clamp(2 − |d|), d the distance around the circle from h6 to the sixth
// opposite the channel's own.
template <class T>
PAL_HOST_DEVICE inline void turn_hue_pixel(T& r, T& g, T& b, T shift) {
  const auto channel = [](T v, T c, T d) {
    d = d > 3 ? d - 6 : d;
    d = d < -3 ? d + 6 : d;
    return clamp01(v - c * clamp01(2 - (d < 0 ? -d : d)));
  };
  const T red = r, green = g, blue = b;
  const T larger = red > green ? red : green, smaller = red > green ? green : red;
  const T v = larger > blue ? larger : blue, low = smaller < blue ? smaller : blue;
  const T c = v - low;
  // Which channel is the largest: the hue starts at 0 (red), 2 (green) or 4 (blue) sixths.
  const T up = v == red ? green : v == green ? blue : red;
  const T down = v == red ? blue : v == green ? red : green;
  const T start = v == red ? T(0) : v == green ? T(2) : T(4);
  const T divisor = c > 0 ? c : T(1);
  const T h6 = start + (up - down) / divisor + shift;  // in [−4, 8]
  r = channel(v, c, h6 - 3);
  g = channel(v, c, h6 + 1);
  b = channel(v, c, h6 - 1);
}

// Mirror without repeating the border: −1 → 1, n → n − 2.
PAL_HOST_DEVICE inline int32_t reflect(int32_t i, int32_t n) {
  if (n == 1) return 0;
  while (i < 0 || i >= n) i = i < 0 ? -i : 2 * (n - 1) - i;
  return i;
}

// Weights exp(−k²/2σ²) / sum for |k| ≤ radius; beyond it they would add less than a tenth of epsilon.
struct BlurFilter {
  double sigma, sum = 1;
  int32_t radius;

  PAL_HOST_DEVICE BlurFilter(double sigma, int32_t full_radius, double epsilon) : sigma(sigma), radius(full_radius) {
    for (int32_t k = 1; k <= full_radius; ++k) sum += 2 * bell(k);
    while (radius > 0 && bell(radius) < 0.1 * epsilon) --radius;
  }
  PAL_HOST_DEVICE double bell(int32_t k) const { return std::exp(-0.5 * k * k / (sigma * sigma)); }
  PAL_HOST_DEVICE double weight(int32_t k) const { return bell(k) / sum; }
};

}  // namespace
}  // namespace pal::kernels::detail
