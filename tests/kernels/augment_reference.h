// augment_reference: one view by the per-pixel formulas, in double and without any care for speed.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/augment_params.h"

namespace pal::kernels::reference {

struct Picture {
  int size = 0;
  int channels = 0;
  std::vector<double> values;  // (size, size, channels)
  double& at(int y, int x, int c) { return values[(size_t(y) * size + x) * channels + c]; }
  double at(int y, int x, int c) const { return values[(size_t(y) * size + x) * channels + c]; }
};

inline double luma(double r, double g, double b) { return 0.2989 * r + 0.587 * g + 0.114 * b; }
inline double luma(const Picture& p, int y, int x) {
  return p.channels == 1 ? p.at(y, x, 0) : luma(p.at(y, x, 0), p.at(y, x, 1), p.at(y, x, 2));
}

// Keys' piecewise cubic with a = -1/2, case by case.
inline double cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

// The filter over every pixel of the axis.
inline std::vector<double> axis_weights(Interpolation interpolation, int length, int size, int out) {
  const double scale = double(length) / size, widening = std::max(1.0, scale), center = (out + 0.5) * scale;
  std::vector<double> w(length);
  double sum = 0;
  for (int p = 0; p < length; ++p) {
    const double d = (p + 0.5 - center) / widening;
    sum += w[p] = interpolation == Interpolation::bicubic ? cubic(d) : std::max(0.0, 1 - std::abs(d));
  }
  for (double& x : w) x /= sum;
  return w;
}

inline Picture crop_resize(const ImageView& image, const ViewParams& params, const AugmentOptions& options,
                           int channels) {
  const int size = options.size;
  Picture p{size, channels, std::vector<double>(size_t(size) * size * channels)};
  const CropBox& box = params.crop;
  for (int y = 0; y < size; ++y) {
    for (int x = 0; x < size; ++x) {
      const auto wy = axis_weights(options.interpolation, box.height, size, y);
      const auto wx = axis_weights(options.interpolation, box.width, size, params.flip ? size - 1 - x : x);
      std::vector<double> sum(image.channels, 0.0);
      for (int i = 0; i < box.height; ++i) {
        for (int j = 0; j < box.width; ++j) {
          for (int c = 0; c < image.channels && wy[i] * wx[j] != 0; ++c) {
            const size_t at = (size_t(box.top + i) * image.width + box.left + j) * image.channels + c;
            sum[c] += wy[i] * wx[j] * image.data[at] / 255.0;
          }
        }
      }
      for (int c = 0; c < channels; ++c) {
        const double value = channels == image.channels ? sum[c] : luma(sum[0], sum[1], sum[2]);
        p.at(y, x, c) = std::clamp(value, 0.0, 1.0);
      }
    }
  }
  return p;
}

// Hexcone HSV (Smith 1978), case by case.
inline std::array<double, 3> turn_hue(std::array<double, 3> rgb, double turn) {
  const double v = *std::max_element(rgb.begin(), rgb.end()), low = *std::min_element(rgb.begin(), rgb.end());
  if (v == low) return rgb;
  const double s = (v - low) / v;
  double h = 0;
  if (v == rgb[0])
    h = (rgb[1] - rgb[2]) / (v - low) / 6;
  else if (v == rgb[1])
    h = 1.0 / 3 + (rgb[2] - rgb[0]) / (v - low) / 6;
  else
    h = 2.0 / 3 + (rgb[0] - rgb[1]) / (v - low) / 6;
  h += turn;
  h -= std::floor(h);
  const int sextant = int(std::floor(6 * h)) % 6;
  const double f = 6 * h - std::floor(6 * h);
  const double p = v * (1 - s), q = v * (1 - s * f), t = v * (1 - s * (1 - f));
  switch (sextant) {
    case 0:
      return {v, t, p};
    case 1:
      return {q, v, p};
    case 2:
      return {p, v, t};
    case 3:
      return {p, q, v};
    case 4:
      return {t, p, v};
    default:
      return {v, p, q};
  }
}

inline void jitter_step(Picture& p, int step, double f) {
  double mean = 0;
  for (int y = 0; y < p.size; ++y) {
    for (int x = 0; x < p.size; ++x) mean += luma(p, y, x) / (double(p.size) * p.size);
  }
  if (p.channels == 1 && (step == kSaturation || step == kHue)) return;
  for (int y = 0; y < p.size; ++y) {
    for (int x = 0; x < p.size; ++x) {
      if (step == kHue) {
        const auto turned = turn_hue({p.at(y, x, 0), p.at(y, x, 1), p.at(y, x, 2)}, f);
        for (int c = 0; c < 3; ++c) p.at(y, x, c) = turned[c];
        continue;
      }
      const double other = step == kBrightness ? 0 : step == kContrast ? mean : luma(p, y, x);
      for (int c = 0; c < p.channels; ++c) p.at(y, x, c) = std::clamp(f * p.at(y, x, c) + (1 - f) * other, 0.0, 1.0);
    }
  }
}

inline int mirror(int i, int n) {
  if (n == 1) return 0;
  const int period = 2 * (n - 1);
  i = ((i % period) + period) % period;
  return i < n ? i : period - i;
}

inline Picture blur(const Picture& p, double sigma) {
  int odd = int(0.1 * p.size) | 1;
  const int radius = std::max(odd, 3) / 2;
  const auto weight = [&](int dy, int dx) { return std::exp(-(dy * dy + dx * dx) / (2 * sigma * sigma)); };
  double sum = 0;
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) sum += weight(dy, dx);
  }
  Picture out = p;
  for (int y = 0; y < p.size; ++y) {
    for (int x = 0; x < p.size; ++x) {
      for (int c = 0; c < p.channels; ++c) {
        double value = 0;
        for (int dy = -radius; dy <= radius; ++dy) {
          for (int dx = -radius; dx <= radius; ++dx) {
            value += weight(dy, dx) / sum * p.at(mirror(y + dy, p.size), mirror(x + dx, p.size), c);
          }
        }
        out.at(y, x, c) = value;
      }
    }
  }
  return out;
}

// The view before solarize and normalize, which the test applies itself (solarize is not continuous).
inline Picture render(const ImageView& image, const ViewParams& params, const AugmentOptions& options) {
  Picture p = crop_resize(image, params, options, std::min(options.channels, image.channels));
  for (int i = 0; i < 4 && params.jitter; ++i) {
    const int step = params.jitter_order[i];
    jitter_step(p, step, params.jitter_factor[step]);
  }
  if (params.gray && p.channels == 3) {
    for (int y = 0; y < p.size; ++y) {
      for (int x = 0; x < p.size; ++x) {
        const double gray = luma(p, y, x);
        for (int c = 0; c < 3; ++c) p.at(y, x, c) = gray;
      }
    }
  }
  return params.blur ? blur(p, params.blur_sigma) : p;
}

}  // namespace pal::kernels::reference
