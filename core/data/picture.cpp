#include "core/data/picture.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"

namespace pal {
namespace {

// Output x of an axis is Σ_j weights[x · taps + j] · input[first[x] + j], in 1/2^14: weights of 16 bits, which every
// vector unit multiplies.
struct Axis {
  int32_t taps = 1;
  std::vector<int32_t> first;
  std::vector<int16_t> weights;
};
constexpr int kShift = 14;

Axis triangle_axis(int32_t from, int32_t to) {
  const double scale = static_cast<double>(from) / to, support = std::max(scale, 1.0);
  Axis axis;
  axis.taps = std::min(from, static_cast<int32_t>(std::floor(2 * support)) + 1);   // centres inside an interval of 2 · support
  for (int32_t x = 0; x < to; ++x) {
    const double centre = (x + 0.5) * scale;
    const int32_t first = std::clamp(static_cast<int32_t>(std::floor(centre - support + 0.5)), 0, from - axis.taps);
    std::vector<double> weights(static_cast<size_t>(axis.taps));
    double sum = 0;
    for (int32_t j = 0; j < axis.taps; ++j) {
      weights[size_t(j)] = std::max(0.0, 1 - std::abs(first + j + 0.5 - centre) / support);
      sum += weights[size_t(j)];
    }
    int32_t left = 1 << kShift;   // the weights add up to one exactly: a plain picture stays plain
    for (double& w : weights) {
      const auto fixed = static_cast<int32_t>(std::lround(w / sum * (1 << kShift)));
      left -= fixed;
      axis.weights.push_back(static_cast<int16_t>(fixed));
    }
    const auto largest = static_cast<size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
    int16_t& heaviest = axis.weights[size_t(x) * size_t(axis.taps) + largest];
    heaviest = static_cast<int16_t>(heaviest + left);
    axis.first.push_back(first);
  }
  return axis;
}

uint8_t to_byte(int32_t sum) { return static_cast<uint8_t>(std::clamp((sum + (1 << (kShift - 1))) >> kShift, 0, 255)); }

template <int kChannels>
void resample_row(uint8_t* to, const uint8_t* row, const Axis& axis, int32_t width) {
  for (int32_t x = 0; x < width; ++x) {
    const uint8_t* source = row + size_t(axis.first[size_t(x)]) * kChannels;
    const int16_t* weights = axis.weights.data() + size_t(x) * size_t(axis.taps);
    int32_t sum[kChannels] = {};
    for (int32_t j = 0; j < axis.taps; ++j) {
      for (int c = 0; c < kChannels; ++c) sum[c] += weights[j] * source[j * kChannels + c];
    }
    for (int c = 0; c < kChannels; ++c) *to++ = to_byte(sum[c]);
  }
}

}  // namespace

Picture turn_upright(const Picture& picture, int orientation) {
  if (orientation <= 1 || orientation > 8) return picture;
  const bool sideways = orientation >= 5;
  const bool upside_down = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;   // axes of the source
  const bool mirrored = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Picture out;
  out.channels = picture.channels;
  out.height = sideways ? picture.width : picture.height;
  out.width = sideways ? picture.height : picture.width;
  out.pixels.resize(picture.pixels.size());
  const auto channels = static_cast<size_t>(picture.channels);
  for (int32_t y = 0; y < out.height; ++y) {
    for (int32_t x = 0; x < out.width; ++x) {
      int32_t from_y = sideways ? x : y, from_x = sideways ? y : x;
      if (upside_down) from_y = picture.height - 1 - from_y;
      if (mirrored) from_x = picture.width - 1 - from_x;
      const size_t from = (size_t(from_y) * size_t(picture.width) + size_t(from_x)) * channels;
      std::copy_n(picture.pixels.begin() + static_cast<ptrdiff_t>(from), channels,
                  out.pixels.begin() + static_cast<ptrdiff_t>((size_t(y) * size_t(out.width) + size_t(x)) * channels));
    }
  }
  return out;
}

Picture resize_picture(const Picture& picture, int32_t height, int32_t width) {
  PAL_ASSERT(height > 0 && width > 0, "a picture without pixels");
  PAL_ASSERT(picture.channels == 1 || picture.channels == 3, "a picture is gray or RGB");
  Picture out;
  out.channels = picture.channels;
  out.height = height;
  out.width = width;
  out.pixels.resize(size_t(height) * size_t(width) * size_t(picture.channels));
  const Axis xs = triangle_axis(picture.width, width), ys = triangle_axis(picture.height, height);
  const auto channels = static_cast<size_t>(picture.channels), stride = size_t(picture.width) * channels;
  std::vector<int32_t> sums(stride);
  std::vector<uint8_t> row(stride);
  for (int32_t y = 0; y < height; ++y) {
    std::fill(sums.begin(), sums.end(), 0);
    for (int32_t j = 0; j < ys.taps; ++j) {   // along contiguous rows first
      const int16_t weight = ys.weights[size_t(y) * size_t(ys.taps) + size_t(j)];
      if (weight == 0) continue;
      const uint8_t* source = picture.pixels.data() + size_t(ys.first[size_t(y)] + j) * stride;
      for (size_t i = 0; i < stride; ++i) sums[i] += weight * static_cast<int16_t>(source[i]);
    }
    for (size_t i = 0; i < stride; ++i) row[i] = to_byte(sums[i]);
    uint8_t* to = out.pixels.data() + size_t(y) * size_t(width) * channels;
    channels == 3 ? resample_row<3>(to, row.data(), xs, width) : resample_row<1>(to, row.data(), xs, width);
  }
  return out;
}

void shorter_side_size(int32_t height, int32_t width, int32_t shorter, int32_t* new_height, int32_t* new_width) {
  const auto longer = [&](int32_t a, int32_t b) { return static_cast<int32_t>((int64_t{a} * shorter + b / 2) / b); };
  *new_height = height <= width ? shorter : longer(height, width);
  *new_width = width <= height ? shorter : longer(width, height);
}

}  // namespace pal
